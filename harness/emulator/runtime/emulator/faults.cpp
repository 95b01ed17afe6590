// What stops a thread: a wild access, a trap, a failed assertion, the end of its time. Handlers run on a stack of their own,
// write down what happened, and leave for the worker; the block is abandoned.
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>

#include "worker.h"

namespace harness_emulator {

namespace {

struct sigaction earlier[65];

void pass_on(int signal_number, siginfo_t* info, void* context) {
  const struct sigaction& before = earlier[signal_number];
  if (before.sa_flags & SA_SIGINFO && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal_number, info, context);
  } else if (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL) {
    before.sa_handler(signal_number);
  } else if (before.sa_handler == SIG_DFL && signal_number != SIGURG) {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
}

const void* code_address(void* context) {
  const auto* machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine->gregs[REG_RIP]);
#else
  return reinterpret_cast<const void*>(machine->pc);
#endif
}

// Whether a kernel's thread was interrupted, not the worker between two of them: only a fiber's stack can be left.
bool is_on_fiber(void* context) {
  const auto* machine = &static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto stack = static_cast<uintptr_t>(machine->gregs[REG_RSP]);
#else
  const auto stack = static_cast<uintptr_t>(machine->sp);
#endif
  return worker->stacks.owns(worker->fiber_stack, reinterpret_cast<const void*>(stack));
}

void unblock(int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

std::string describe_access(const void* address) {
  char text[64];
  std::snprintf(text, sizeof text, " memory that is no allocation: address %p", address);
  const char* begin = nullptr;
  size_t bytes = 0;
  for (long distance : {0L, -4096L, -65536L, 4096L, 65536L}) {
    if (!find_device(static_cast<const char*>(address) + distance, &begin, &bytes)) { continue; }
    return describe_outside(static_cast<const char*>(address), begin, bytes);
  }
  return text;
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
  if (worker == nullptr || worker->running == nullptr || current == nullptr) { return pass_on(signal_number, info, context); }
  const Thread& thread = *current;
  std::string file;
  int line = 0;
  place_of(code_address(context), file, line);
  if (file.empty()) { file = thread.block->launch->file; }
  std::string message, check = "out_of_bounds";
  int error = 700;
  const void* address = info->si_addr;
  if (worker->stacks.guards(address)) {
    check = "stack_overflow";
    message = "a thread needs more than 256 KiB for local variables and calls: it recurses without end, or its arrays are huge";
    error = 719;
  } else if (signal_number == SIGFPE || signal_number == SIGILL || signal_number == SIGTRAP) {
    check = "trap";
    message = "the kernel ran into a trap, or divided an integer by zero";
    error = 719;
  } else if (address == nullptr && info->si_code == SI_KERNEL) {
    check = "misaligned";
    message = "a thread accesses memory at an address that is not aligned as its type needs, or at no address at all";
    error = 716;
  } else if (worker->arena.holds(address)) {
    message = "a thread reads or writes beyond the shared memory of its block";
  } else if (is_of_host(address)) {
    check = "host_memory";
    message = "a thread reads or writes a tensor that is not on the GPU";
  } else {
    message = "a thread reads or writes" + describe_access(address);
  }
  record(check.c_str(), "error", message, file.c_str(), line, &thread, "");
  stop_launch(error, message + (line ? ", " + file + ":" + std::to_string(line) : ""));
  unblock(signal_number);
  abandon_block();
}

void on_time(int signal_number, siginfo_t* info, void* context) {
  if (worker == nullptr || worker->running == nullptr || current == nullptr) { return pass_on(signal_number, info, context); }
  RunningLaunch& running = *worker->running;
  if ((!running.has_failed && now_s() <= running.deadline) || !is_on_fiber(context) || !may_leave()) { return; }
  if (!running.has_failed) {
    std::string file;
    int line = 0;
    place_of(code_address(context), file, line);
    record("time_limit", "error", "the kernel did not end within " + std::to_string(int(settings.time_limit_s)) + " s",
           file.empty() ? running.launch.file : file.c_str(), line, current, "");
    stop_launch(702, "the kernel did not end within " + std::to_string(int(settings.time_limit_s)) + " s");
  }
  unblock(signal_number);
  abandon_block();
}

}

void install_handlers(Worker& own) {
  stack_t stack{};
  stack.ss_sp = own.signal_stack.data();
  stack.ss_size = own.signal_stack.size();
  sigaltstack(&stack, nullptr);
  static const bool is_installed = [] {
    for (int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGURG}) {
      struct sigaction action{};
      action.sa_sigaction = signal_number == SIGURG ? on_time : on_fault;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      sigaction(signal_number, &action, &earlier[signal_number]);
    }
    return true;
  }();
  static_cast<void>(is_installed);
}

std::string name_arguments(const char* begin, size_t bytes) {
  std::string names;
  const Launch& launch = *current->block->launch;
  for (size_t i = 0; i < launch.argument_count; ++i) {
    const char* address = static_cast<const char*>(launch.arguments[i].address);
    if (address < begin || address >= begin + std::max<size_t>(bytes, 1)) { continue; }
    names += (names.empty() ? "" : " or ") + std::string(launch.arguments[i].name);
  }
  return names;
}

std::string describe_outside(const char* address, const char* begin, size_t bytes) {
  const std::string names = name_arguments(begin, bytes);
  const std::string side = address < begin ? " before the beginning" : " beyond the end";
  return side + (names.empty() ? "" : " of " + names) + ": byte " + std::to_string(address - begin) + " of an allocation of " +
         std::to_string(bytes) + " bytes";
}

void fail_thread(int error, const char* check, const char* message, int line) {
  const Thread* thread = current;
  if (thread == nullptr) { throw std::runtime_error(message); }
  record(check, "error", message, thread->block->launch->file, line, thread, "");
  stop_launch(error, message);
  abandon_block();
}

void note(const char* check, const char* severity, const char* message, int line, const char* value) {
  const Thread* thread = current;
  record(check, severity, message, thread ? thread->block->launch->file : "", line, thread, value);
}

}
