// What was noticed, as JSON for the worker; and how it asks kernels to be run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <tuple>

#include "worker.h"

namespace harness_emulator {

namespace {

std::mutex findings_mutex;
std::vector<std::string> findings;
std::set<std::tuple<std::string, std::string, int, std::string>> seen;
constexpr size_t MAX_FINDINGS = 64;

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 32) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string triple(uint3 v) { return "[" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + "]"; }

// The value of a key of a flat JSON object, as text.
std::string read_value(const std::string& json, const std::string& key) {
  size_t at = json.find("\"" + key + "\"");
  if (at == std::string::npos) { return ""; }
  at = json.find_first_not_of(" \t\n:", at + key.size() + 2);
  if (at == std::string::npos) { return ""; }
  if (json[at] == '"') { return json.substr(at + 1, json.find('"', at + 1) - at - 1); }
  return json.substr(at, json.find_first_of(",}", at) - at);
}

}

void record(const char* check, const char* severity, const std::string& message, const char* file, int line,
            const Thread* thread, const std::string& value) {
  const char* kernel = worker && worker->running ? worker->running->launch.kernel : launching ? launching : "";
  std::lock_guard<std::mutex> lock(findings_mutex);
  if (findings.size() >= MAX_FINDINGS || !seen.emplace(check, kernel, line, thread ? "" : message).second) { return; }
  const std::string path = file ? file : "";
  std::string text = "{\"check\":" + quote(check) + ",\"severity\":" + quote(severity) + ",\"message\":" + quote(message) +
                     ",\"file\":" + quote(path.substr(path.rfind('/') + 1)) + ",\"line\":" + std::to_string(line) +
                     ",\"kernel\":" + quote(kernel);
  const bool is_plain = thread && thread->block->launch->is_plain;
  text += ",\"block\":" + (thread ? triple(thread->block->index) : std::string("null"));
  text += ",\"thread\":" + (thread && !is_plain ? triple(thread->thread) : std::string("null"));
  findings.push_back(text + ",\"value\":" + quote(value) + "}");
}

}

extern "C" __attribute__((visibility("default"))) const char* harness_emulator_take_findings() {
  using namespace harness_emulator;
  static std::string text;
  std::lock_guard<std::mutex> lock(findings_mutex);
  text = "[";
  for (const std::string& finding : findings) { text += (text.size() > 1 ? "," : "") + finding; }
  text += "]";
  findings.clear();
  seen.clear();
  return text.c_str();
}

// {"order": "ascending" | "descending" | "random", "seed": 1, "threads": 2, "time_limit_s": 10, "launches_only": 1}; what is
// left out stays.
extern "C" __attribute__((visibility("default"))) void harness_emulator_configure(const char* json) {
  using namespace harness_emulator;
  const std::string text = json ? json : "";
  const std::string order = read_value(text, "order"), seed = read_value(text, "seed"), threads = read_value(text, "threads");
  const std::string limit = read_value(text, "time_limit_s");
  if (!order.empty()) { settings.order = order == "descending" ? 1 : order == "random" ? 2 : 0; }
  if (!seed.empty()) { settings.seed = std::strtoull(seed.c_str(), nullptr, 10); }
  if (!threads.empty()) { settings.threads = std::atoi(threads.c_str()); }
  if (const std::string only = read_value(text, "launches_only"); !only.empty()) { settings.launches_only = only != "0"; }
  if (!limit.empty() && std::atof(limit.c_str()) > 0) { settings.time_limit_s = std::atof(limit.c_str()); }
}
