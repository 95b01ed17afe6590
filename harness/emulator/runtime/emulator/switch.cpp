// From one stack to another: what a call must preserve is left on the old one.

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.globl harness_emulator_switch
.hidden harness_emulator_switch
.type harness_emulator_switch,@function
harness_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size harness_emulator_switch,.-harness_emulator_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.p2align 4
.globl harness_emulator_switch
.hidden harness_emulator_switch
.type harness_emulator_switch,%function
harness_emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size harness_emulator_switch,.-harness_emulator_switch
)");
#else
#error "the emulated device knows how to switch stacks on x86-64 and aarch64 only"
#endif

namespace harness_emulator {

// What the first switch to a fresh stack finds there: registers of no meaning, and where to begin.
void* prepare_stack(void* top, void (*begin)()) {
  void** place = static_cast<void**>(top);
#if defined(__x86_64__)
  *--place = nullptr;  // so that the stack is aligned as after a call
  *--place = reinterpret_cast<void*>(begin);
  for (int i = 0; i < 6; ++i) { *--place = nullptr; }
#else
  for (int i = 0; i < 20; ++i) { *--place = nullptr; }
  place[11] = reinterpret_cast<void*>(begin);  // x30, the link register
#endif
  return place;
}

}
