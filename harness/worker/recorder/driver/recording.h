// What is recorded of a call, as rows of JSON.

#pragma once

#include <stdint.h>
#include <stdio.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "real_driver.h"

namespace {

constexpr size_t kMostOperations = 200000;

int capturing = 0;  // streams that are being captured

std::string json_text(const std::string& text) {
    std::string out = "\"";
    for (unsigned char c : text) {
        char escaped[8];
        if (c == '"' || c == '\\') (out += '\\') += char(c);
        else if (c < 0x20 || c >= 0x7f) out.append(escaped, snprintf(escaped, sizeof escaped, "\\u%04x", c));
        else out += char(c);
    }
    return out + '"';
}
std::string hex(const void* data, size_t size) {
    static const char digits[] = "0123456789abcdef";
    std::string out(2 * size, '0');
    for (size_t i = 0; i < size; ++i) {
        unsigned char byte = static_cast<const unsigned char*>(data)[i];
        out[2 * i] = digits[byte >> 4];
        out[2 * i + 1] = digits[byte & 15];
    }
    return out;
}
std::string list(std::initializer_list<unsigned long long> numbers) {
    std::string out = "[";
    for (auto number : numbers) (out += out.size() > 1 ? "," : "") += std::to_string(number);
    return out + "]";
}

struct StreamFacts {  // as it was when the call first used it: it may end with the call
    int id;
    unsigned flags;
    int priority;
};
struct Recording {
    bool on = false;
    std::vector<std::string> operations, function_rows, graph_rows;
    std::unordered_map<void*, int> event_ids;
    std::map<void*, StreamFacts> streams;
    std::set<int> used_images;
    std::string blob;  // data that operations, globals and images refer to
    size_t host_bytes = 0;
    std::set<std::string> unsupported;
} recording;

bool is_recording() { return recording.on; }

void add(std::string row) {
    if (recording.operations.size() >= kMostOperations) recording.unsupported.insert("more than 200000 operations in one call");
    else recording.operations.push_back(std::move(row));
}
void refuse(const std::string& reason) {
    if (recording.on) recording.unsupported.insert(reason);
}

CUstream plain_stream(CUstream stream, bool thread) {
    if (stream == CU_STREAM_LEGACY) return nullptr;
    return stream == nullptr && thread ? CU_STREAM_PER_THREAD : stream;
}
// A stream that is being captured does not run what it is given; the graph is recorded when it is launched.
bool is_captured(CUstream stream, bool thread) {
    if (!capturing) return false;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return !REAL(cuStreamIsCapturing, "cuStreamIsCapturing", plain_stream(stream, thread), &status) && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}
int stream_id(CUstream stream, bool thread) {
    CUstream plain = plain_stream(stream, thread);
    auto known = recording.streams.find(plain);
    if (known != recording.streams.end()) return known->second.id;
    StreamFacts facts{int(recording.streams.size()), 0, 0};
    if (plain && plain != CU_STREAM_PER_THREAD) {
        REAL(cuStreamGetFlags, "cuStreamGetFlags", plain, &facts.flags);
        REAL(cuStreamGetPriority, "cuStreamGetPriority", plain, &facts.priority);
    }
    return recording.streams.emplace(plain, facts).first->second.id;
}
bool records(CUstream stream, bool thread) { return is_recording() && !is_captured(stream, thread); }

void record_synchronization() {
    std::lock_guard<std::recursive_mutex> lock(guard);
    if (is_recording() && !recording.operations.empty() && recording.operations.back() != "[\"sync\"]") add("[\"sync\"]");
}

}  // namespace
