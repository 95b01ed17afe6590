// The threads of one block, each a fiber, run one after the other until one must wait: at a barrier, or for the lanes of its
// warp. A fiber that ends lends its stack to the next thread, so a block whose threads never wait needs one.
#include <algorithm>
#include <cstdio>

#include "worker.h"

namespace harness_emulator {

void* prepare_stack(void* top, void (*begin)());
thread_local Thread* current = nullptr;
thread_local Worker* worker = nullptr;

namespace {

uint32_t lowest(uint32_t bits) { return static_cast<uint32_t>(__builtin_ctz(bits)); }
uint32_t highest(uint32_t bits) { return 31u - static_cast<uint32_t>(__builtin_clz(bits)); }

// Bits from `from` on, then those below: what is next in a circle.
uint32_t next_in_circle(uint32_t bits, uint32_t from) {
  const uint32_t above = from >= 32 ? 0 : bits & (~0u << from);
  return lowest(above ? above : bits);
}

uint64_t random_step(uint64_t& state) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}
thread_local uint64_t random_state = 88172645463325252ull;

uint32_t pick_bit(uint32_t bits, uint32_t from) {
  if (settings.order == 0) { return next_in_circle(bits, from); }
  if (settings.order == 1) { return highest(bits); }
  const auto rotation = static_cast<uint32_t>(random_step(random_state) & 31u);
  return next_in_circle(bits, rotation);
}

Thread* pick(Block& block, uint32_t warp, uint32_t lane) {
  if (block.ready_warps == 0) { return nullptr; }
  uint32_t chosen = warp;
  const bool stays = settings.order == 0 && (block.ready_warps >> warp & 1u);
  if (!stays) { chosen = pick_bit(block.ready_warps, warp); }
  const uint32_t bit = pick_bit(block.warp[chosen].ready, chosen == warp ? lane + 1 : 0);
  return &block.threads[chosen * 32 + bit];
}

void mark_ready(Block& block, uint32_t warp, uint32_t lanes) {
  block.warp[warp].ready |= lanes;
  if (lanes) { block.ready_warps |= 1u << warp; }
}

void unmark(Block& block, const Thread& thread) {
  uint32_t& ready = block.warp[thread.warp].ready;
  ready &= ~(1u << thread.lane);
  if (ready == 0) { block.ready_warps &= ~(1u << thread.warp); }
}

[[noreturn]] void fiber_main();

// Leaves the stack that runs now; `saved` keeps where it was, null where nobody comes back to it.
void go_to(Thread* next, void** saved) {
  void* nowhere;
  if (next->is_started) {
    current = next;
    unmark(*next->block, *next);
    worker->fiber_stack = next->stack;
    harness_emulator_switch(saved ? saved : &nowhere, next->stack_pointer);
    return;
  }
  void* stack = worker->stacks.take();
  worker->fiber_stack = stack;
  current = next;
  harness_emulator_switch(saved ? saved : &nowhere, prepare_stack(stack, fiber_main));
}

void complete(Block& block, Warp& warp, uint32_t number, Meeting& meeting) {
  warp.open &= ~(1ull << (&meeting - warp.meetings));
  meeting.readers = meeting.arrived;
  note_meeting(warp, meeting.arrived);
  mark_ready(block, number, meeting.arrived);
}

bool is_complete(const Warp& warp, const Meeting& meeting) {
  return (meeting.mask & warp.alive & ~meeting.arrived) == 0;
}

void complete_meetings(Block& block, uint32_t number) {
  Warp& warp = block.warp[number];
  for (uint64_t open = warp.open; open; open &= open - 1) {
    Meeting& meeting = warp.meetings[__builtin_ctzll(open)];
    if (is_complete(warp, meeting)) { complete(block, warp, number, meeting); }
  }
}

void release(Block& block, Barrier& barrier) {
  for (uint32_t i = 0; i < block.warps; ++i) {
    mark_ready(block, i, barrier.waiting[i]);
    barrier.waiting[i] = 0;
  }
  barrier.result = barrier.count;
  barrier.arrived = 0;
  barrier.count = 0;
  barrier.line = 0;
  barrier.mixed = false;
}

void complete_barriers(Block& block) {
  for (int i = 0; i < BARRIERS; ++i) {
    Barrier& barrier = block.barriers[i];
    if (barrier.arrived && barrier.expected == 0 && barrier.arrived >= block.alive) { release(block, barrier); }
  }
}

// Nobody can go on. Who asks which lanes are here has the answer then. Lanes that wait for absent ones are let go, as hardware without convergence would; a barrier is final.
Meeting* find_stuck(Block& block, bool is_free, uint32_t& number) {
  for (number = 0; number < block.warps; ++number) {
    for (uint64_t open = block.warp[number].open; open; open &= open - 1) {
      Meeting& meeting = block.warp[number].meetings[__builtin_ctzll(open)];
      if (meeting.is_free == is_free) { return &meeting; }
    }
  }
  return nullptr;
}

bool resolve(Block& block) {
  uint32_t number = 0;
  Meeting* meeting = find_stuck(block, true, number);
  if (meeting == nullptr) {
    meeting = find_stuck(block, false, number);
    if (meeting == nullptr) { return false; }
    char text[200];
    std::snprintf(text, sizeof text, "the mask 0x%08x of a warp operation names lanes 0x%08x, which never take part",
                  meeting->mask, meeting->mask & block.warp[number].alive & ~meeting->arrived);
    Thread* first = &block.threads[number * 32 + lowest(meeting->arrived)];
    record("absent_lanes", "error", text, block.launch->file, meeting->line, first, "");
  }
  complete(block, block.warp[number], number, *meeting);
  return true;
}

void report_deadlock(Block& block) {
  const bool is_known = std::any_of(block.barriers, block.barriers + BARRIERS, [](const Barrier& one) { return one.mixed; });
  for (uint32_t i = 0; i < block.count && !is_known; ++i) {
    const Thread& thread = block.threads[i];
    if (!thread.is_started || thread.has_exited) { continue; }
    record("barrier_divergence", "error", "threads wait for each other for ever: not all of them reach this barrier",
           block.launch->file, thread.waits_at_line, &thread, "");
    break;
  }
  stop_launch(702, "threads of a block wait for each other for ever at a barrier that not all of them reach");
}

// The thread after this one has stopped running; back to the worker where there is none.
Thread* next_or_null(Block& block, uint32_t warp, uint32_t lane) {
  Thread* next = pick(block, warp, lane);
  while (next == nullptr && block.alive > 0 && block.grid_waiting == 0) {
    if (!resolve(block)) { break; }
    next = pick(block, warp, lane);
  }
  return next;
}

void leave_for_worker(void** saved) {
  void* nowhere;
  void* home = worker->block.main_stack_pointer;
  harness_emulator_switch(saved ? saved : &nowhere, home);
}

void suspend(Thread& thread) {
  end_block_checks();
  Block& block = *thread.block;
  Thread* next = next_or_null(block, thread.warp, thread.lane);
  if (next == &thread) {
    unmark(block, thread);
    return;
  }
  if (next == nullptr) {
    leave_for_worker(&thread.stack_pointer);
    return;
  }
  go_to(next, &thread.stack_pointer);
}

void end_thread(Thread& thread) {
  Block& block = *thread.block;
  thread.has_exited = true;
  end_block_checks();
  block.warp[thread.warp].alive &= ~(1u << thread.lane);
  --block.alive;
  if (block.alive == 0) { return; }
  complete_meetings(block, thread.warp);
  complete_barriers(block);
}

[[noreturn]] void fiber_main() {
  for (;;) {
    Thread& thread = *current;
    Block& block = *thread.block;
    thread.is_started = true;
    thread.stack = worker->fiber_stack;
    unmark(block, thread);
    if (block.launch->is_plain) {
      block.launch->run_block(block.launch->closure, worker->place);
      block.alive = 0;
      block.ready_warps = 0;
      thread.has_exited = true;
      worker->stacks.give_back(thread.stack);
      leave_for_worker(nullptr);
    }
    block.launch->run_thread(block.launch->closure);
    end_thread(thread);
    Thread* next = next_or_null(block, thread.warp, thread.lane);
    if (next == nullptr) {
      worker->stacks.give_back(thread.stack);
      leave_for_worker(nullptr);
    }
    if (!next->is_started) {
      current = next;
      continue;
    }
    worker->stacks.give_back(thread.stack);
    go_to(next, nullptr);
  }
}

void take_back_stacks(Worker& own, Block& block) {
  for (uint32_t i = 0; i < block.count; ++i) {
    Thread& thread = block.threads[i];
    if (thread.is_started && !thread.has_exited) {
      thread.has_exited = true;
      own.stacks.give_back(thread.stack);
    }
  }
}

}

// Runs the block until all its threads have ended (false) or wait for the grid (true).
bool run_until_waiting(Worker& own, Block& block) {
  Thread* next = next_or_null(block, 0, 31);
  if (next != nullptr) {
    own.block.main_stack_pointer = nullptr;
    go_to(next, &own.block.main_stack_pointer);
  }
  current = nullptr;
  if (own.running->has_failed.load(std::memory_order_relaxed)) {
    take_back_stacks(own, block);
    return false;
  }
  if (block.alive > 0 && block.grid_waiting == 0) {
    report_deadlock(block);
    take_back_stacks(own, block);
    return false;
  }
  return block.alive > 0;
}

void abandon_block() {
  leave_for_worker(nullptr);
  __builtin_unreachable();
}

void seed_order(uint64_t seed) { random_state = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull; }

// After a barrier, threads run in their order again, not from the one on that came last.
static void begin_next_interval(Thread& thread) {
  Block& block = *thread.block;
  const bool is_descending = settings.order == 1;
  const uint32_t warp = is_descending ? highest(block.ready_warps) : lowest(block.ready_warps);
  const uint32_t lane = is_descending ? highest(block.warp[warp].ready) : lowest(block.warp[warp].ready);
  Thread* first = &block.threads[warp * 32 + lane];
  if (settings.order == 2 || first == &thread) {
    unmark(block, thread);
    return;
  }
  end_block_checks();
  go_to(first, &thread.stack_pointer);
}

void arrive_at_barrier(int number, int threads, int line) {
  Thread& thread = *current;
  Block& block = *thread.block;
  Barrier& barrier = block.barriers[number & (BARRIERS - 1)];
  barrier.expected = static_cast<uint32_t>(threads);
  if (barrier.arrived == 0) { barrier.line = line; }
  ++barrier.arrived;
  ++thread.interval;
  if (barrier.arrived >= barrier.expected) { release(block, barrier); }
}

int wait_at_barrier(int number, int threads, int kind, int predicate, int line) {
  Thread& thread = *current;
  Block& block = *thread.block;
  Barrier& barrier = block.barriers[number & (BARRIERS - 1)];
  barrier.expected = static_cast<uint32_t>(threads);
  if (barrier.arrived == 0) { barrier.line = line; }
  if (barrier.line != line && !barrier.mixed && number == 0 && threads == 0) {
    barrier.mixed = true;
    note("barrier_divergence", "error", "threads of a block meet at different barriers: some are at another line", line);
  }
  const bool is_and = kind == 2;
  barrier.count = barrier.arrived == 0 ? (predicate != 0) : is_and ? (barrier.count && predicate) : barrier.count + (predicate != 0);
  ++barrier.arrived;
  ++thread.interval;
  thread.waits_at_line = line;
  const uint32_t needed = threads > 0 ? static_cast<uint32_t>(threads) : block.alive;
  barrier.waiting[thread.warp] |= 1u << thread.lane;
  if (barrier.arrived >= needed) {
    release(block, barrier);
    begin_next_interval(thread);
  } else {
    suspend(thread);
  }
  return kind == 3 ? barrier.result : barrier.result != 0;
}

void begin_arrivals(unsigned* state, unsigned expected) {
  state[0] = state[1] = expected;
  state[2] = 0;
}
unsigned long long arrive_at(unsigned* state, unsigned count) {
  const unsigned long long token = state[2];
  state[1] -= count < state[1] ? count : state[1];
  if (state[1] == 0) {
    state[1] = state[0];
    ++state[2];
  }
  ++current->interval;
  return token;
}
void drop_arrival(unsigned* state) {
  --state[0];
  arrive_at(state, 1);
}
// Others are let run until enough of them have arrived; where all wait so, the launch's time limit ends it.
void wait_for_arrivals(const unsigned* state, unsigned long long token, int line) {
  current->waits_at_line = line;
  const volatile unsigned* passed = state + 2;
  while (*passed == unsigned(token)) { let_others_run(); }
  ++current->interval;
}

void wait_for_grid(int line) {
  Thread& thread = *current;
  Block& block = *thread.block;
  if (!block.launch->is_cooperative) {
    fail_thread(720, "cooperative_launch", "a grid can only wait for itself in a cooperative launch", line);
  }
  thread.waits_at_line = line;
  ++thread.interval;
  ++block.grid_waiting;
  suspend(thread);
}

void release_grid_waiters(Block& block) {
  block.grid_waiting = 0;
  for (uint32_t i = 0; i < block.count; ++i) {
    const Thread& thread = block.threads[i];
    if (!thread.has_exited) { mark_ready(block, thread.warp, 1u << thread.lane); }
  }
}

namespace {

// The open meeting of this kind, or a new one.
Meeting& open_meeting(Warp& warp, uint32_t mask, bool is_free, int line, Operation operation) {
  for (uint64_t open = warp.open; open; open &= open - 1) {
    Meeting& meeting = warp.meetings[__builtin_ctzll(open)];
    if (meeting.is_free == is_free && (is_free ? meeting.line == line : meeting.mask == mask && meeting.operation == operation)) {
      return meeting;
    }
  }
  const int number = __builtin_ctzll(~warp.busy);
  Meeting& meeting = warp.meetings[number];
  meeting.mask = mask;
  meeting.arrived = 0;
  meeting.is_free = is_free;
  meeting.operation = operation;
  meeting.line = line;
  warp.open |= 1ull << number;
  warp.busy |= 1ull << number;
  return meeting;
}

Meeting& arrive(uint32_t mask, bool is_free, uint64_t value, uint64_t more, int line, Operation operation) {
  Thread& thread = *current;
  Block& block = *thread.block;
  Warp& warp = block.warp[thread.warp];
  Meeting& meeting = open_meeting(warp, mask, is_free, line, operation);
  meeting.arrived |= 1u << thread.lane;
  meeting.value[thread.lane] = value;
  meeting.more[thread.lane] = more;
  thread.waits_at_line = line;
  if (is_complete(warp, meeting)) {
    complete(block, warp, thread.warp, meeting);
    unmark(block, thread);
  } else {
    suspend(thread);
  }
  return meeting;
}

}

Meeting& meet(uint32_t mask, uint64_t value, uint64_t more, int line, Operation operation) {
  if (!(mask >> current->lane & 1u)) {
    note("absent_lanes", "error", "a lane takes part in a warp operation whose mask does not name it", line);
  }
  return arrive(mask, false, value, more, line, operation);
}

void leave(Meeting& meeting) {
  meeting.readers &= ~(1u << current->lane);
  if (meeting.readers == 0) {
    Warp& warp = current->block->warp[current->warp];
    warp.busy &= ~(1ull << (&meeting - warp.meetings));
  }
}

// Which lanes of the warp are at this line: known when no other thread of the block can go on.
uint32_t lanes_here(int line) {
  Meeting& meeting = arrive(~0u, true, 0, 0, line, Operation::other);
  const uint32_t lanes = meeting.arrived;
  leave(meeting);
  return lanes;
}

void let_others_run() {
  Thread& thread = *current;
  Block& block = *thread.block;
  if (block.launch->is_plain) { return; }
  mark_ready(block, thread.warp, 1u << thread.lane);
  // The next thread of the block in a circle, so that each comes to its turn.
  const uint32_t behind = thread.lane == 31 ? 0 : block.warp[thread.warp].ready & (~0u << (thread.lane + 1u));
  const uint32_t warp = behind ? thread.warp : next_in_circle(block.ready_warps, thread.warp + 1u);
  const uint32_t lane = lowest(behind ? behind : block.warp[warp].ready);
  Thread* next = &block.threads[warp * 32 + lane];
  if (next == &thread) {
    unmark(block, thread);
    return;
  }
  go_to(next, &thread.stack_pointer);
}

}
