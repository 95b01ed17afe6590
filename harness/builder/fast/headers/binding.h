#pragma GCC visibility push(hidden)
extern "C" {
void harness_copy(void* to, const void* from) { new (to) at::Tensor(*static_cast<const at::Tensor*>(from)); }
void harness_move(void* to, void* from) { new (to) at::Tensor(std::move(*static_cast<at::Tensor*>(from))); }
void harness_destroy(void* tensor) { static_cast<at::Tensor*>(tensor)->~Tensor(); }
}
static_assert(sizeof(at::Tensor) == sizeof(void*) && alignof(at::Tensor) == alignof(void*));
namespace {
struct Slot {
  virtual ~Slot() = default;
  virtual bool load(py::handle source, bool convert) = 0;
  virtual void* value() = 0;
};
template <typename T> struct Typed : Slot {
  py::detail::make_caster<T> caster;
  bool load(py::handle source, bool convert) override { return caster.load(source, convert); }
  void* value() override { return &py::detail::cast_op<T&>(caster); }
};
std::string between(const std::string& text, const std::string& start, const std::string& end) {
  const auto from = text.find(start) + start.size();
  return text.substr(from, text.rfind(end) - from);
}
// pybind11's own words for a type, as an argument and as a result.
template <typename T> std::string argument_text() {
  py::cpp_function probe([](T) {}, py::name("f"));
  return between(py::str(probe.attr("__doc__")), "arg0: ", ") -> ");
}
template <typename T> std::string result_text() {
  py::cpp_function probe([]() -> T { throw std::runtime_error("never called"); }, py::name("f"));
  const std::string doc = py::str(probe.attr("__doc__"));
  return between(doc, ") -> ", "\n");
}
std::unique_ptr<Slot> make_slot(char code) {
  switch (code) {
    case 'l': return std::make_unique<Typed<int64_t>>();
    case 'i': return std::make_unique<Typed<int>>();
    case 'd': return std::make_unique<Typed<double>>();
    case 'f': return std::make_unique<Typed<float>>();
    case 'b': return std::make_unique<Typed<bool>>();
    case 'o': case 'p': return std::make_unique<Typed<std::optional<at::Tensor>>>();
    case 'T': case 'V': return std::make_unique<Typed<std::vector<at::Tensor>>>();
    case 'I': case 'J': return std::make_unique<Typed<std::vector<int64_t>>>();
    default: return std::make_unique<Typed<at::Tensor>>();
  }
}
std::string describe_argument(char code) {
  switch (code) {
    case 'l': return argument_text<int64_t>();
    case 'i': return argument_text<int>();
    case 'd': return argument_text<double>();
    case 'f': return argument_text<float>();
    case 'b': return argument_text<bool>();
    case 'c': return argument_text<const at::Tensor&>();
    case 'o': case 'p': return argument_text<std::optional<at::Tensor>>();
    case 'T': case 'V': return argument_text<std::vector<at::Tensor>>();
    case 'I': case 'J': return argument_text<std::vector<int64_t>>();
    default: return argument_text<at::Tensor>();
  }
}
std::string describe_result(char code) {
  switch (code) {
    case 'v': return result_text<void>();
    case 'l': return result_text<int64_t>();
    case 'i': return result_text<int>();
    case 'd': return result_text<double>();
    case 'f': return result_text<float>();
    case 'b': return result_text<bool>();
    case 'L': return result_text<std::vector<at::Tensor>>();
    default: return result_text<at::Tensor>();
  }
}
void call_handled(const HarnessFunction& function, void** values, void* result) {
  HANDLE_TH_ERRORS
  function.call(values, result);
  return;
  END_HANDLE_TH_ERRORS_PYBIND
}
template <typename T> py::handle take(void* storage, py::detail::function_call& call) {
  struct Owner { T* value; ~Owner() { value->~T(); } } owner{static_cast<T*>(storage)};
  const auto policy = py::detail::return_value_policy_override<T>::policy(call.func.policy);
  return py::detail::make_caster<T>::cast(std::move(*owner.value), policy, call.parent);
}
py::handle cast_result(char code, void* storage, py::detail::function_call& call) {
  switch (code) {
    case 'v': return py::none().release();
    case 'l': return take<int64_t>(storage, call);
    case 'i': return take<int>(storage, call);
    case 'd': return take<double>(storage, call);
    case 'f': return take<float>(storage, call);
    case 'b': return take<bool>(storage, call);
    case 'L': return take<std::vector<at::Tensor>>(storage, call);
    default: return take<at::Tensor>(storage, call);
  }
}
py::handle dispatch(py::detail::function_call& call) {
  const auto& function = *static_cast<const HarnessFunction*>(call.func.data[0]);
  const std::string codes = function.parameters;
  std::vector<std::unique_ptr<Slot>> slots;
  std::vector<void*> values;
  for (size_t i = 0; i < codes.size(); ++i) {
    slots.push_back(make_slot(codes[i]));
    if (!slots.back()->load(call.args[i], call.args_convert[i])) { return PYBIND11_TRY_NEXT_OVERLOAD; }
    values.push_back(slots.back()->value());
  }
  alignas(16) unsigned char storage[64];
  call_handled(function, values.data(), storage);
  return cast_result(*function.result, storage, call);
}
struct Bound : py::cpp_function {
  Bound(const HarnessFunction& function, const py::module_& module) {
    const std::string codes = function.parameters;
    std::string text = "(";
    for (size_t i = 0; i < codes.size(); ++i) { text += (i ? ", {" : "{") + describe_argument(codes[i]) + "}"; }
    text += ") -> " + describe_result(*function.result);
    auto record = make_function_record();
    record->impl = dispatch;
    record->data[0] = const_cast<HarnessFunction*>(&function);
    record->nargs_pos = static_cast<std::uint16_t>(codes.size());
    py::detail::process_attributes<py::name, py::scope, py::sibling, const char*>::init(
        py::name(function.name), py::scope(module), py::sibling(py::getattr(module, function.name, py::none())),
        function.doc, record.get());
    const std::type_info* const types[] = {nullptr};
    initialize_generic(std::move(record), text.c_str(), types, codes.size());
  }
};
}
PYBIND11_MODULE(harness_binding, module) {
  for (const auto* function = harness_functions; function->name != nullptr; ++function) {
    module.add_object(function->name, Bound(*function, module), true);
  }
}
extern "C" void* harness_open(const char* name) {
  PyObject* result = PyInit_harness_binding();
  if (result != nullptr && PyObject_TypeCheck(result, &PyModuleDef_Type)) {
    reinterpret_cast<PyModuleDef*>(result)->m_name = name;
  }
  return result;
}
