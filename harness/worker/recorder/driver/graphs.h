// Records launches of the program's own graphs.

#pragma once

#include "copies.h"
#include "launches.h"

namespace {

std::unordered_map<void*, CUgraph> graph_of;  // a copy of what an executable graph was made from

CUresult keep_graph(CUresult status, CUgraphExec executable, CUgraph graph) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    CUgraph copy = nullptr;
    if (!status) graph_of[executable] = REAL(cuGraphClone, "cuGraphClone", &copy, graph) ? nullptr : copy;
    return status;
}
CUresult cuGraphInstantiateWithFlags_hook(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
    CUresult status = REAL(cuGraphInstantiate, "cuGraphInstantiateWithFlags", out, graph, flags);
    return status ? status : keep_graph(status, *out, graph);
}
template <bool thread>
CUresult cuGraphInstantiateWithParams_hook(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
    CUresult status = REAL(cuGraphInstantiateWithParams, thread ? "cuGraphInstantiateWithParams_ptsz" : "cuGraphInstantiateWithParams", out, graph,
                           parameters);
    return status ? status : keep_graph(status, *out, graph);
}
CUresult instantiate_with_log(const char* name, CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, size_t size) {
    auto function = reinterpret_cast<CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t)>(real(name));
    CUresult status = function(out, graph, node, log, size);
    return status ? status : keep_graph(status, *out, graph);
}
CUresult cuGraphInstantiate_hook(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, size_t size) {
    return instantiate_with_log("cuGraphInstantiate", out, graph, node, log, size);
}
CUresult cuGraphInstantiate_v2_hook(CUgraphExec* out, CUgraph graph, CUgraphNode* node, char* log, size_t size) {
    return instantiate_with_log("cuGraphInstantiate_v2", out, graph, node, log, size);
}
CUresult cuGraphExecUpdate_hook(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo* result) {
    return keep_graph(REAL(cuGraphExecUpdate, "cuGraphExecUpdate_v2", executable, graph, result), executable, graph);
}
std::string describe_kernel_node(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS parameters = {};
    if (REAL(cuGraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2", node, &parameters)) return "";
    std::vector<CUlaunchAttribute> attributes;
    for (int id : {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                   CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE}) {
        CUlaunchAttribute one = {};
        one.id = CUlaunchAttributeID(id);
        if (!REAL(cuGraphKernelNodeGetAttribute, "cuGraphKernelNodeGetAttribute", node, one.id, &one.value)) attributes.push_back(one);
    }
    void* function = parameters.func ? static_cast<void*>(parameters.func) : static_cast<void*>(parameters.kern);
    return describe_launch({function,
                            {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ},
                            {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ},
                            parameters.sharedMemBytes, parameters.kernelParams, parameters.extra, attributes.data(), unsigned(attributes.size())}, 0);
}
int describe_graph(CUgraph graph);
std::string describe_node(CUgraphNode node) {
    CUgraphNodeType kind;
    if (REAL(cuGraphNodeGetType, "cuGraphNodeGetType", node, &kind)) return "";
    if (kind == CU_GRAPH_NODE_TYPE_KERNEL) return describe_kernel_node(node);
    if (kind == CU_GRAPH_NODE_TYPE_EMPTY) return "[\"empty\"]";
    if (kind == CU_GRAPH_NODE_TYPE_MEMSET) {
        CUDA_MEMSET_NODE_PARAMS set = {};
        if (REAL(cuGraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams", node, &set)) return "";
        return "[\"set\",0," + std::to_string(set.dst) + "," + std::to_string(set.pitch) + "," + std::to_string(set.elementSize) + "," +
               std::to_string(set.value) + "," + std::to_string(set.width) + "," + std::to_string(set.height) + "]";
    }
    if (kind == CU_GRAPH_NODE_TYPE_MEMCPY) {
        CUDA_MEMCPY3D copy = {};
        if (REAL(cuGraphMemcpyNodeGetParams, "cuGraphMemcpyNodeGetParams", node, &copy)) return "";
        auto on_device = [](CUmemorytype where, CUdeviceptr address) {
            return where == CU_MEMORYTYPE_DEVICE || (where == CU_MEMORYTYPE_UNIFIED && is_device(address));
        };
        if (on_device(copy.srcMemoryType, copy.srcDevice) && on_device(copy.dstMemoryType, copy.dstDevice))
            return "[\"copy3d\",0,\"" + hex(&copy, sizeof copy) + "\"]";
        refuse("a graph copies host memory");
        return "";
    }
    if (kind == CU_GRAPH_NODE_TYPE_GRAPH) {
        CUgraph child = nullptr;
        if (REAL(cuGraphChildGraphNodeGetGraph, "cuGraphChildGraphNodeGetGraph", node, &child)) return "";
        return "[\"graph\",0," + std::to_string(describe_graph(child)) + "]";
    }
    refuse("a graph has a node of kind " + std::to_string(int(kind)));
    return "";
}
int describe_graph(CUgraph graph) {
    size_t count = 0, edge_count = 0;
    REAL(cuGraphGetNodes, "cuGraphGetNodes", graph, static_cast<CUgraphNode*>(nullptr), &count);
    if (count > kMostOperations) {
        refuse("a graph of more than 200000 nodes");
        return -1;
    }
    std::vector<CUgraphNode> nodes(count);
    REAL(cuGraphGetNodes, "cuGraphGetNodes", graph, nodes.data(), &count);
    std::unordered_map<void*, size_t> place;
    std::string rows, edges;
    for (size_t i = 0; i < count; ++i) {
        place[nodes[i]] = i;
        std::string row = describe_node(nodes[i]);
        if (row.empty()) refuse("a node of a graph could not be read");
        (rows += i ? "," : "") += row.empty() ? "[\"empty\"]" : row;
    }
    CUgraphNode *none = nullptr;
    CUgraphEdgeData* no_data = nullptr;
    using GetEdges = CUresult (*)(CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, size_t*);  // not so in CUDA 12's header
    void* get_edges = real("cuGraphGetEdges_v2");
    call<GetEdges>(get_edges, graph, none, none, no_data, &edge_count);
    std::vector<CUgraphNode> from(edge_count), to(edge_count);
    std::vector<CUgraphEdgeData> data(edge_count);
    if (edge_count) call<GetEdges>(get_edges, graph, from.data(), to.data(), data.data(), &edge_count);
    for (size_t i = 0; i < edge_count; ++i)
        (edges += i ? "," : "") += list({place[from[i]], place[to[i]], data[i].from_port, data[i].to_port, data[i].type});
    recording.graph_rows.push_back("{\"nodes\":[" + rows + "],\"edges\":[" + edges + "]}");
    return int(recording.graph_rows.size()) - 1;
}
std::unordered_map<void*, int> graph_ids;  // of this recording, by executable graph

template <bool thread>
CUresult cuGraphLaunch_hook(CUgraphExec executable, CUstream stream) {
    CUresult status = REAL(cuGraphLaunch, thread ? "cuGraphLaunch_ptsz" : "cuGraphLaunch", executable, stream);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (status || !records(stream, thread)) return status;
    CUgraph graph = graph_of.count(executable) ? graph_of[executable] : nullptr;
    if (!graph) {
        refuse("a graph that cannot be read, such as one with memory nodes or changed parameters");
        return status;
    }
    if (!graph_ids.count(executable)) graph_ids[executable] = describe_graph(graph);
    add("[\"graph\"," + std::to_string(stream_id(stream, thread)) + "," + std::to_string(graph_ids[executable]) + "]");
    return status;
}

}  // namespace
