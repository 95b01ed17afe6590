// Records what orders the work of streams, and notices captures.

#pragma once

#include "recording.h"

namespace {

CUresult record_event(CUresult status, CUevent event, CUstream stream, bool thread) {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(stream, thread))
        add("[\"record\"," + std::to_string(stream_id(stream, thread)) + "," +
            std::to_string(recording.event_ids.emplace(event, int(recording.event_ids.size())).first->second) + "]");
    return status;
}
template <bool thread>
CUresult cuEventRecord_hook(CUevent event, CUstream stream) {
    CUresult status = REAL(cuEventRecord, thread ? "cuEventRecord_ptsz" : "cuEventRecord", event, stream);
    return record_event(status, event, stream, thread);
}
template <bool thread>
CUresult cuEventRecordWithFlags_hook(CUevent event, CUstream stream, unsigned flags) {
    CUresult status = REAL(cuEventRecordWithFlags, thread ? "cuEventRecordWithFlags_ptsz" : "cuEventRecordWithFlags", event, stream, flags);
    return record_event(status, event, stream, thread);
}
template <bool thread>
CUresult cuStreamWaitEvent_hook(CUstream stream, CUevent event, unsigned flags) {
    CUresult status = REAL(cuStreamWaitEvent, thread ? "cuStreamWaitEvent_ptsz" : "cuStreamWaitEvent", stream, event, flags);
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (!status && records(stream, thread) && recording.event_ids.count(event))  // else recorded before this call
        add("[\"wait\"," + std::to_string(stream_id(stream, thread)) + "," + std::to_string(recording.event_ids[event]) + "]");
    return status;
}
template <bool thread>
CUresult cuStreamSynchronize_hook(CUstream stream) {
    record_synchronization();
    return REAL(cuStreamSynchronize, thread ? "cuStreamSynchronize_ptsz" : "cuStreamSynchronize", stream);
}
CUresult cuCtxSynchronize_hook() {
    record_synchronization();
    return synchronize();
}
CUresult cuCtxSynchronize_v2_hook(CUcontext context) {
    record_synchronization();
    auto function = reinterpret_cast<CUresult (*)(CUcontext)>(real("cuCtxSynchronize_v2"));
    return function(context);
}
CUresult cuEventSynchronize_hook(CUevent event) {
    record_synchronization();
    return REAL(cuEventSynchronize, "cuEventSynchronize", event);
}
template <bool thread>
CUresult cuStreamBeginCapture_hook(CUstream stream, CUstreamCaptureMode mode) {
    CUresult status = REAL(cuStreamBeginCapture, thread ? "cuStreamBeginCapture_v2_ptsz" : "cuStreamBeginCapture_v2", stream, mode);
    std::lock_guard<std::recursive_mutex> lock(guard);
    capturing += !status;
    return status;
}
template <bool thread>
CUresult cuStreamBeginCaptureToGraph_hook(CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* edges, size_t count,
                                          CUstreamCaptureMode mode) {
    CUresult status = REAL(cuStreamBeginCaptureToGraph, thread ? "cuStreamBeginCaptureToGraph_ptsz" : "cuStreamBeginCaptureToGraph", stream, graph,
                           nodes, edges, count, mode);
    std::lock_guard<std::recursive_mutex> lock(guard);
    capturing += !status;
    return status;
}
template <bool thread>
CUresult cuStreamEndCapture_hook(CUstream stream, CUgraph* out) {
    CUresult status = REAL(cuStreamEndCapture, thread ? "cuStreamEndCapture_ptsz" : "cuStreamEndCapture", stream, out);
    std::lock_guard<std::recursive_mutex> lock(guard);
    capturing = std::max(0, capturing - 1);
    return status;
}

}  // namespace
