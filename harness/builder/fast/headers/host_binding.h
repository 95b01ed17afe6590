namespace harness_binding {
template <typename T> struct Argument;
template <typename T, char C> struct Plain {
  static constexpr char code = C;
  static T take(void* value) { return *static_cast<T*>(value); }
};
template <> struct Argument<long> : Plain<long, 'l'> {};
template <> struct Argument<int> : Plain<int, 'i'> {};
template <> struct Argument<double> : Plain<double, 'd'> {};
template <> struct Argument<float> : Plain<float, 'f'> {};
template <> struct Argument<bool> : Plain<bool, 'b'> {};
template <typename T, char C> struct Tensors {
  static constexpr char code = C;
  static T take(void* value) { return static_cast<T>(*static_cast<at::Tensor*>(value)); }
};
template <> struct Argument<at::Tensor&> : Tensors<at::Tensor&, 'r'> {};
template <> struct Argument<const at::Tensor&> : Tensors<const at::Tensor&, 'c'> {};
template <> struct Argument<at::Tensor> : Tensors<at::Tensor&&, 't'> {};
template <typename T, char C> struct Moved {
  static constexpr char code = C;
  static T&& take(void* value) { return static_cast<T&&>(*static_cast<T*>(value)); }
};
template <typename T, char C> struct Referred {
  static constexpr char code = C;
  static const T& take(void* value) { return *static_cast<const T*>(value); }
};
template <> struct Argument<std::optional<at::Tensor>> : Moved<std::optional<at::Tensor>, 'o'> {};
template <> struct Argument<std::vector<at::Tensor>> : Moved<std::vector<at::Tensor>, 'T'> {};
template <> struct Argument<std::vector<long>> : Moved<std::vector<long>, 'I'> {};
template <> struct Argument<const std::optional<at::Tensor>&> : Referred<std::optional<at::Tensor>, 'p'> {};
template <> struct Argument<const std::vector<at::Tensor>&> : Referred<std::vector<at::Tensor>, 'V'> {};
template <> struct Argument<const std::vector<long>&> : Referred<std::vector<long>, 'J'> {};
template <typename T> struct Result { static constexpr char code = Argument<T>::code; };
template <> struct Result<void> { static constexpr char code = 'v'; };
template <> struct Result<std::vector<at::Tensor>> { static constexpr char code = 'L'; };
template <typename T> struct Result<T&>;
template <> struct Result<std::optional<at::Tensor>>;
template <> struct Result<std::vector<long>>;
namespace {  // per library: the type of F does not contain its result
template <auto F> struct Bound;
template <typename R, typename... A, R (*F)(A...)> struct Bound<F> {
  static constexpr char result[] = {Result<R>::code, 0};
  static constexpr char parameters[] = {Argument<A>::code..., 0};
  template <std::size_t... I> static void pass(void** arguments, void* result, std::index_sequence<I...>) {
    if constexpr (std::is_void_v<R>) {
      F(Argument<A>::take(arguments[I])...);
    } else {
      new (result) R(F(Argument<A>::take(arguments[I])...));
    }
  }
  static void call(void** arguments, void* result) { pass(arguments, result, std::index_sequence_for<A...>{}); }
};
}
}
#endif
