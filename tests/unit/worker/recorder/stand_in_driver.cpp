// A stand-in for the NVIDIA driver, because the real one cannot be had without a GPU: it keeps what the tests of the forwarding
// library look at (handles, calls, captured graphs), maps host memory where device memory is asked for, and runs no kernel.
// A kernel's name tells its parameters: k_8_4 has one of 8 and one of 4 bytes.

#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Function;
struct Owner {  // a module, or a library and its module
    std::map<std::string, Function*> functions;
    Owner* module = nullptr;
    uint32_t global = 0xabcdef01;
};
struct Function {
    std::string name;
    Owner* owner;
    std::vector<std::pair<size_t, size_t>> parameters;  // offset, size
};
struct Node {
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS kernel = {};
    std::vector<std::string> arguments;
    std::vector<void*> places;
    CUDA_MEMSET_NODE_PARAMS set = {};
    CUDA_MEMCPY3D copy = {};
};
struct Graph {
    std::vector<Node*> nodes;
    std::vector<std::pair<Node*, Node*>> edges;
};
struct Stream {
    unsigned flags = 0;
    int priority = 0;
    Graph* captured = nullptr;
};

std::string calls;  // since standin_forget_calls

template <typename... Values>
CUresult note(const char* name, Values... values) {
    std::ostringstream out;
    out << name;
    ((out << ' ' << (unsigned long long)(values)), ...);
    calls += out.str() + "\n";
    return CUDA_SUCCESS;
}
Graph* captured_by(CUstream handle) {
    bool is_own = handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD;
    return is_own ? reinterpret_cast<Stream*>(handle)->captured : nullptr;
}
void append(Graph* graph, Node* node) {
    if (!graph->nodes.empty()) graph->edges.push_back({graph->nodes.back(), node});
    graph->nodes.push_back(node);
}
Function* find_function(Owner* owner, const char* name) {
    Function*& found = owner->functions[name];
    if (found) return found;
    found = new Function{name, owner, {}};
    size_t offset = 0, size;
    for (const char* at = strchr(name, '_'); at && sscanf(at, "_%zu", &size) == 1; at = strchr(at + 1, '_')) {
        size_t alignment = size % 8 ? 4 : 8;
        offset = (offset + alignment - 1) / alignment * alignment;
        found->parameters.emplace_back(offset, size);
        offset += size;
    }
    return found;
}
CUresult launch(const char* name, CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared, CUstream stream, void** arguments) {
    note(name, function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream);
    Graph* graph = captured_by(stream);
    if (!graph) return CUDA_SUCCESS;
    Node* node = new Node{CU_GRAPH_NODE_TYPE_KERNEL};
    auto known = reinterpret_cast<Function*>(function);
    for (size_t i = 0; i < known->parameters.size(); ++i) node->arguments.emplace_back(static_cast<char*>(arguments[i]), known->parameters[i].second);
    for (auto& one : node->arguments) node->places.push_back(one.data());
    node->kernel.func = function;
    node->kernel.gridDimX = grid[0], node->kernel.gridDimY = grid[1], node->kernel.gridDimZ = grid[2];
    node->kernel.blockDimX = block[0], node->kernel.blockDimY = block[1], node->kernel.blockDimZ = block[2];
    node->kernel.sharedMemBytes = shared;
    node->kernel.kernelParams = node->places.data();
    append(graph, node);
    return CUDA_SUCCESS;
}
CUresult copy(const char* name, CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    note(name, to, from, bytes, stream);
    if (!to) return CUDA_ERROR_INVALID_VALUE;
    if (Graph* graph = captured_by(stream)) {
        Node* node = new Node{CU_GRAPH_NODE_TYPE_MEMCPY};
        node->copy.srcMemoryType = node->copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        node->copy.srcDevice = from, node->copy.dstDevice = to;
        node->copy.WidthInBytes = bytes, node->copy.Height = node->copy.Depth = 1;
        append(graph, node);
    } else {
        memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    }
    return CUDA_SUCCESS;
}
CUresult set(const char* name, CUdeviceptr to, unsigned value, unsigned element, size_t count, CUstream stream) {
    note(name, to, value, count, stream);
    if (Graph* graph = captured_by(stream)) {
        Node* node = new Node{CU_GRAPH_NODE_TYPE_MEMSET};
        node->set = {to, 0, value, element, count, 1};
        append(graph, node);
    }
    return CUDA_SUCCESS;
}
unsigned long long handle_count = 0;
template <typename Handle>
CUresult give(Handle* out) {
    *out = Handle(0x1000 + 16 * ++handle_count);
    return CUDA_SUCCESS;
}

}  // namespace

#define BOTH(declare) declare(, ) declare(_ptsz, _ptds)

extern "C" {
const char* standin_calls() { return calls.c_str(); }
int standin_refuses_access = 0;
void standin_forget_calls() { calls.clear(); }

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return note("cuCtxSynchronize"); }
CUresult cuGetErrorName(CUresult, const char** text) { return *text = "CUDA_ERROR", CUDA_SUCCESS; }

// ---- memory
CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr wanted, unsigned long long) {
    int fixed = wanted ? MAP_FIXED_NOREPLACE : 0;
    void* found = mmap(reinterpret_cast<void*>(wanted), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (found == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = CUdeviceptr(found);
    return note("cuMemAddressReserve", *out, bytes);
}
CUresult cuMemAddressFree(CUdeviceptr start, size_t bytes) { return munmap(reinterpret_cast<void*>(start), bytes), note("cuMemAddressFree", start, bytes); }
CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes, const CUmemAllocationProp* kind, unsigned long long) {
    note("cuMemCreate", bytes, kind->requestedHandleTypes);
    return bytes > (size_t{1} << 40) ? CUDA_ERROR_OUT_OF_MEMORY : give(out);
}
CUresult cuMemRelease(CUmemGenericAllocationHandle) { return CUDA_SUCCESS; }
CUresult cuMemMap(CUdeviceptr start, size_t bytes, size_t, CUmemGenericAllocationHandle, unsigned long long) { return note("cuMemMap", start, bytes); }
CUresult cuMemUnmap(CUdeviceptr start, size_t bytes) {
    mprotect(reinterpret_cast<void*>(start), bytes, PROT_NONE);
    return note("cuMemUnmap", start, bytes);
}
CUresult cuMemSetAccess(CUdeviceptr start, size_t bytes, const CUmemAccessDesc* access, size_t) {
    note("cuMemSetAccess", start, bytes);
    if (standin_refuses_access || access->location.id) return CUDA_ERROR_INVALID_DEVICE;
    mprotect(reinterpret_cast<void*>(start), bytes, PROT_READ | PROT_WRITE);
    return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr*, size_t bytes) { return note("cuMemAlloc_v2", bytes), CUDA_ERROR_OUT_OF_MEMORY; }
CUresult cuMemAllocPitch_v2(CUdeviceptr*, size_t*, size_t, size_t, unsigned) { return CUDA_ERROR_OUT_OF_MEMORY; }
CUresult cuMemFree_v2(CUdeviceptr address) { return note("cuMemFree_v2", address); }
CUresult cuPointerGetAttribute(void*, CUpointer_attribute, CUdeviceptr) { return CUDA_ERROR_INVALID_VALUE; }
#define MEMORY(s, d)                                                                                                              \
    CUresult cuMemAllocAsync##s(CUdeviceptr*, size_t bytes, CUstream) { return note("cuMemAllocAsync" #s, bytes), CUDA_ERROR_OUT_OF_MEMORY; } \
    CUresult cuMemFreeAsync##s(CUdeviceptr address, CUstream stream) { return note("cuMemFreeAsync" #s, address, stream); }
BOTH(MEMORY)

// ---- code
CUresult cuModuleLoadData(CUmodule* out, const void*) { return *out = reinterpret_cast<CUmodule>(new Owner), CUDA_SUCCESS; }
CUresult cuModuleLoad(CUmodule* out, const char*) { return *out = reinterpret_cast<CUmodule>(new Owner), CUDA_SUCCESS; }
CUresult cuLibraryLoadData(CUlibrary* out, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**, unsigned) {
    Owner* owner = new Owner;
    owner->module = new Owner;
    return *out = reinterpret_cast<CUlibrary>(owner), CUDA_SUCCESS;
}
CUresult cuLibraryGetModule(CUmodule* out, CUlibrary library) { return *out = reinterpret_cast<CUmodule>(reinterpret_cast<Owner*>(library)->module), CUDA_SUCCESS; }
CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
    return *out = reinterpret_cast<CUfunction>(find_function(reinterpret_cast<Owner*>(module), name)), CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
    return *out = reinterpret_cast<CUkernel>(find_function(reinterpret_cast<Owner*>(library), name)), CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
    auto known = reinterpret_cast<Function*>(kernel);
    return *out = reinterpret_cast<CUfunction>(find_function(known->owner->module, known->name.c_str())), CUDA_SUCCESS;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char*) {
    if (address) *address = CUdeviceptr(&reinterpret_cast<Owner*>(module)->global);
    if (bytes) *bytes = 4;
    return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
    auto known = reinterpret_cast<Function*>(function);
    if (index >= known->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = known->parameters[index].first, *size = known->parameters[index].second;
    return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute kind, CUfunction) {
    return *value = kind == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? 65536 : 0, CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) { return *name = reinterpret_cast<Function*>(function)->name.c_str(), CUDA_SUCCESS; }
CUresult cuFuncGetModule(CUmodule* out, CUfunction function) { return *out = reinterpret_cast<CUmodule>(reinterpret_cast<Function*>(function)->owner), CUDA_SUCCESS; }

// ---- work
#define WORK(s, d)                                                                                                                         \
    CUresult cuLaunchKernel##s(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
                               CUstream stream, void** parameters, void**) {                                                               \
        unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};                                                                            \
        return launch("cuLaunchKernel" #s, f, grid, block, shared, stream, parameters);                                                    \
    }                                                                                                                                      \
    CUresult cuLaunchCooperativeKernel##s(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,       \
                                          unsigned shared, CUstream stream, void** parameters) {                                           \
        unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};                                                                            \
        return launch("cuLaunchCooperativeKernel" #s, f, grid, block, shared, stream, parameters);                                         \
    }                                                                                                                                      \
    CUresult cuLaunchKernelEx##s(const CUlaunchConfig* c, CUfunction f, void** parameters, void**) {                                        \
        return launch("cuLaunchKernelEx" #s, f, &c->gridDimX, &c->blockDimX, c->sharedMemBytes, c->hStream, parameters);                    \
    }                                                                                                                                      \
    CUresult cuMemcpy##d(CUdeviceptr to, CUdeviceptr from, size_t n) { return copy("cuMemcpy" #d, to, from, n, nullptr); }                  \
    CUresult cuMemcpyAsync##s(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream st) { return copy("cuMemcpyAsync" #s, to, from, n, st); } \
    CUresult cuMemcpyHtoD_v2##d(CUdeviceptr to, const void* from, size_t n) { return copy("cuMemcpyHtoD_v2" #d, to, CUdeviceptr(from), n, nullptr); } \
    CUresult cuMemcpyHtoDAsync_v2##s(CUdeviceptr to, const void* from, size_t n, CUstream st) {                                             \
        return copy("cuMemcpyHtoDAsync_v2" #s, to, CUdeviceptr(from), n, st);                                                              \
    }                                                                                                                                      \
    CUresult cuMemcpyDtoH_v2##d(void* to, CUdeviceptr from, size_t n) { return copy("cuMemcpyDtoH_v2" #d, CUdeviceptr(to), from, n, nullptr); } \
    CUresult cuMemcpyDtoHAsync_v2##s(void* to, CUdeviceptr from, size_t n, CUstream st) {                                                   \
        return copy("cuMemcpyDtoHAsync_v2" #s, CUdeviceptr(to), from, n, st);                                                              \
    }                                                                                                                                      \
    CUresult cuMemcpyDtoDAsync_v2##s(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream st) { return copy("cuMemcpyDtoDAsync_v2" #s, to, from, n, st); } \
    CUresult cuMemcpy2DAsync_v2##s(const CUDA_MEMCPY2D*, CUstream st) { return note("cuMemcpy2DAsync_v2" #s, st); }                         \
    CUresult cuMemsetD8Async##s(CUdeviceptr to, unsigned char v, size_t n, CUstream st) { return set("cuMemsetD8Async" #s, to, v, 1, n, st); } \
    CUresult cuMemsetD32Async##s(CUdeviceptr to, unsigned v, size_t n, CUstream st) { return set("cuMemsetD32Async" #s, to, v, 4, n, st); }  \
    CUresult cuLaunchHostFunc##s(CUstream stream, CUhostFn function, void* data) {                                                         \
        if (Graph* graph = captured_by(stream)) append(graph, new Node{CU_GRAPH_NODE_TYPE_HOST});                                           \
        return note("cuLaunchHostFunc" #s, stream, function, data);                                                                        \
    }                                                                                                                                      \
    CUresult cuMemcpyOfTomorrowAsync##s(void* a, void* b, void* c, size_t e, void* f, void* g, size_t h, void* i, CUstream st) {             \
        return note("cuMemcpyOfTomorrowAsync" #s, a, b, c, e, f, g, h, i, st);                                                             \
    }
BOTH(WORK)

// ---- order
CUresult cuStreamCreate(CUstream* out, unsigned flags) { return *out = reinterpret_cast<CUstream>(new Stream{flags}), CUDA_SUCCESS; }
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
    return *out = reinterpret_cast<CUstream>(new Stream{flags, priority}), CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream stream) {
    reinterpret_cast<Stream*>(stream)->flags = reinterpret_cast<Stream*>(stream)->priority = 99;  // memory that is used for something else
    return CUDA_SUCCESS;
}
CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) { return *flags = reinterpret_cast<Stream*>(stream)->flags, CUDA_SUCCESS; }
CUresult cuStreamGetPriority(CUstream stream, int* priority) { return *priority = reinterpret_cast<Stream*>(stream)->priority, CUDA_SUCCESS; }
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
    return *status = captured_by(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* out, unsigned) { return give(out); }
CUresult cuEventSynchronize(CUevent event) { return note("cuEventSynchronize", event); }
#define ORDER(s, d)                                                                                                         \
    CUresult cuEventRecord##s(CUevent event, CUstream stream) { return note("cuEventRecord" #s, event, stream); }           \
    CUresult cuStreamWaitEvent##s(CUstream stream, CUevent event, unsigned) { return note("cuStreamWaitEvent" #s, stream, event); } \
    CUresult cuStreamSynchronize##s(CUstream stream) { return note("cuStreamSynchronize" #s, stream); }                     \
    CUresult cuStreamBeginCapture_v2##s(CUstream stream, CUstreamCaptureMode) {                                             \
        return reinterpret_cast<Stream*>(stream)->captured = new Graph, CUDA_SUCCESS;                                       \
    }                                                                                                                       \
    CUresult cuStreamEndCapture##s(CUstream stream, CUgraph* out) {                                                         \
        *out = reinterpret_cast<CUgraph>(captured_by(stream));                                                              \
        return reinterpret_cast<Stream*>(stream)->captured = nullptr, CUDA_SUCCESS;                                         \
    }                                                                                                                       \
    CUresult cuGraphLaunch##s(CUgraphExec executable, CUstream stream) { return note("cuGraphLaunch" #s, executable, stream); }
BOTH(ORDER)

// ---- graphs
CUresult cuGraphClone(CUgraph* out, CUgraph graph) { return *out = reinterpret_cast<CUgraph>(new Graph(*reinterpret_cast<Graph*>(graph))), CUDA_SUCCESS; }
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph, unsigned long long) { return give(out); }
CUresult cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo*) { return note("cuGraphExecUpdate_v2", executable, graph); }
CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec executable, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext context) {
    return note("cuGraphExecMemsetNodeSetParams", executable, node, parameters, context);
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
    return note("cuGraphExecKernelNodeSetParams_v2", executable, node, parameters);
}
CUresult cuGraphNodeSetEnabled(CUgraphExec executable, CUgraphNode node, unsigned on) { return note("cuGraphNodeSetEnabled", executable, node, on); }
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    auto known = reinterpret_cast<Graph*>(graph);
    *count = known->nodes.size();
    if (nodes) memcpy(nodes, known->nodes.data(), *count * sizeof *nodes);
    return CUDA_SUCCESS;
}
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count) {
    auto known = reinterpret_cast<Graph*>(graph);
    *count = known->edges.size();
    for (size_t i = 0; from && i < *count; ++i) {
        from[i] = reinterpret_cast<CUgraphNode>(known->edges[i].first), to[i] = reinterpret_cast<CUgraphNode>(known->edges[i].second);
        data[i] = {};
    }
    return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) { return *type = reinterpret_cast<Node*>(node)->type, CUDA_SUCCESS; }
CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) { return *out = reinterpret_cast<Node*>(node)->kernel, CUDA_SUCCESS; }
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue*) { return CUDA_ERROR_INVALID_VALUE; }
CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) { return *out = reinterpret_cast<Node*>(node)->set, CUDA_SUCCESS; }
CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) { return *out = reinterpret_cast<Node*>(node)->copy, CUDA_SUCCESS; }

// The newest version of a function; flag 2 asks for those that use the per-thread stream.
CUresult cuGetProcAddress_v2(const char* symbol, void** out, int, cuuint64_t flags, CUdriverProcAddressQueryResult*) {
    Dl_info own;
    dladdr(reinterpret_cast<void*>(&cuInit), &own);
    static void* library = dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    std::vector<std::string> suffixes = {"_v2", ""};
    if (flags & 2) suffixes.insert(suffixes.begin(), {"_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds"});
    *out = nullptr;
    for (const auto& suffix : suffixes)
        if (!*out) *out = dlsym(library, (symbol + suffix).c_str());
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
}
