// The assembler's macro `triptych_call_beside_vectors FUNCTION`: calls a function and keeps all
// vector registers, for code between any two instructions of a kernel. The caller has stored the
// other registers: rbx and those that a call changes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__x86_64__)
asm(R"(
    .macro triptych_call_beside_vectors function
    movq %rsp, %rbx
    andq $-32, %rsp
    subq $512, %rsp
    .set at, 0
    .irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovaps %ymm\register, at(%rsp)
    .set at, at + 32
    .endr
    cld
    call \function
    .set at, 0
    .irp register, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vmovaps at(%rsp), %ymm\register
    .set at, at + 32
    .endr
    movq %rbx, %rsp
    .endm
)");
#endif
