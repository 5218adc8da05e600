// The instruction set, written by systolic/isa/generate_package.cpp from its table: a
// word of the program as each instruction, a packed struct (bits that it leaves unused
// are called unused_<lowest bit>).
// SPDX-License-Identifier: Apache-2.0
package mmu_pkg;
  localparam int unsigned INSTRUCTION_BITS = 256;

  localparam int unsigned UNIT_LOAD = 0;
  localparam int unsigned UNIT_WEIGHTS = 1;
  localparam int unsigned UNIT_COMPUTE = 2;
  localparam int unsigned UNIT_STORE = 3;

  typedef enum logic [7:0] {
    OP_HALT = 8'd1,
    OP_LOAD = 8'd2,
    OP_WEIGHT_LOAD = 8'd3,
    OP_SET_STREAM = 8'd4,
    OP_SET_TAPS = 8'd5,
    OP_MATMUL = 8'd6,
    OP_SET_OUTPUT = 8'd7,
    OP_LOAD_REGISTERS = 8'd8,
    OP_STORE = 8'd9,
    OP_SET_OPERAND = 8'd10,
    OP_VECTOR_LOAD = 8'd11,
    OP_VECTOR_STORE = 8'd12,
    OP_VECTOR_OP = 8'd13
  } opcode_e;

  localparam logic [4:0] OPERATION_MOVE = 5'd0;
  localparam logic [4:0] OPERATION_FILL = 5'd1;
  localparam logic [4:0] OPERATION_ADD = 5'd2;
  localparam logic [4:0] OPERATION_SUBTRACT = 5'd3;
  localparam logic [4:0] OPERATION_MULTIPLY = 5'd4;
  localparam logic [4:0] OPERATION_FMA = 5'd5;
  localparam logic [4:0] OPERATION_LARGER = 5'd6;
  localparam logic [4:0] OPERATION_SMALLER = 5'd7;
  localparam logic [4:0] OPERATION_GREATER = 5'd8;
  localparam logic [4:0] OPERATION_EQUAL = 5'd9;
  localparam logic [4:0] OPERATION_SELECT = 5'd10;
  localparam logic [4:0] OPERATION_AND = 5'd11;
  localparam logic [4:0] OPERATION_OR = 5'd12;
  localparam logic [4:0] OPERATION_XOR = 5'd13;
  localparam logic [4:0] OPERATION_ADD_INTEGER = 5'd14;
  localparam logic [4:0] OPERATION_SUBTRACT_INTEGER = 5'd15;
  localparam logic [4:0] OPERATION_SHIFT_LEFT = 5'd16;
  localparam logic [4:0] OPERATION_SHIFT_RIGHT = 5'd17;
  localparam logic [4:0] OPERATION_TO_FLOAT = 5'd18;
  localparam logic [4:0] OPERATION_ROTATE = 5'd19;
  localparam logic [4:0] OPERATION_BROADCAST = 5'd20;
  localparam logic [31:0] OPERATIONS_READ_A = 32'h001FFFFD;
  localparam logic [31:0] OPERATIONS_READ_B = 32'h0003FFFE;
  localparam logic [31:0] OPERATIONS_READ_C = 32'h00000420;
  localparam logic [31:0] OPERATIONS_ADD = 32'h0000000C;
  localparam logic [31:0] OPERATIONS_MULTIPLY = 32'h00000010;
  localparam logic [31:0] OPERATIONS_FMA = 32'h00000020;
  localparam logic [31:0] OPERATIONS_OTHER = 32'h0007FFC0;

  typedef struct packed {
    logic [27:0] unused_228;
    logic [3:0] log2_group;
    logic [31:0] lines;
    logic [31:0] units;
    logic [31:0] buffer_pitch;
    logic [31:0] buffer_row;
    logic [31:0] pitch;
    logic [31:0] address;
    logic [15:0] flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } load_t;

  typedef struct packed {
    logic [14:0] unused_17;
    logic stream;
  } weight_load_flags_t;
  typedef struct packed {
    logic [127:0] unused_128;
    logic [15:0] columns;
    logic [15:0] rows;
    logic [31:0] pitch;
    logic [31:0] address;
    weight_load_flags_t flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } weight_load_t;

  typedef struct packed {
    logic [31:0] wrap_n;
    logic [31:0] wrap_y;
    logic [31:0] step_x;
    logic [15:0] out_width;
    logic [15:0] out_height;
    logic [15:0] restart_x;
    logic [15:0] restart_y;
    logic [15:0] stride_x;
    logic [15:0] stride_y;
    logic [15:0] in_width;
    logic [15:0] in_height;
    logic [15:0] flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } set_stream_t;

  typedef struct packed {
    logic [63:0] unused_192;
    logic [31:0] jump_y;
    logic [31:0] jump_x;
    logic [11:0] unused_116;
    logic [3:0] log2_group;
    logic [15:0] restart_dx;
    logic [15:0] step_dx;
    logic [15:0] step_dy;
    logic [15:0] kernel_width;
    logic [15:0] channels;
    logic [15:0] flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } set_taps_t;

  typedef struct packed {
    logic [9:0] unused_22;
    logic drain;
    logic output_stationary;
    logic abut;
    logic transpose;
    logic keep;
    logic accumulate;
  } matmul_flags_t;
  typedef struct packed {
    logic [15:0] kernel_x;
    logic [15:0] channel;
    logic [15:0] accumulator;
    logic [15:0] count;
    logic [15:0] dx;
    logic [15:0] dy;
    logic [15:0] columns_left;
    logic [15:0] rows_left;
    logic [15:0] x;
    logic [15:0] y;
    logic [31:0] offset;
    logic [31:0] address;
    matmul_flags_t flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } matmul_t;

  typedef struct packed {
    logic [31:0] unused_224;
    logic [15:0] pool_wrap_n;
    logic [15:0] pool_wrap_y;
    logic [15:0] unused_176;
    logic [15:0] pool_pitch;
    logic [31:0] wrap_n;
    logic [31:0] wrap_y;
    logic [31:0] step_x;
    logic [15:0] out_width;
    logic [15:0] out_height;
    logic [15:0] flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } set_output_t;

  typedef struct packed {
    logic [127:0] unused_128;
    logic [31:0] pitch;
    logic [11:0] unused_84;
    logic [1:0] more;
    logic [1:0] file;
    logic [15:0] columns;
    logic [31:0] address;
    logic [15:0] flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } load_registers_t;

  typedef struct packed {
    logic [6:0] unused_25;
    logic buffer;
    logic select;
    logic residual;
    logic mask;
    logic pool;
    logic scale;
    logic narrow;
    logic relu;
    logic bias;
  } store_flags_t;
  typedef struct packed {
    logic [63:0] unused_192;
    logic [31:0] operand;
    logic [11:0] unused_148;
    logic [3:0] log2_group;
    logic [15:0] columns;
    logic [15:0] columns_left;
    logic [15:0] rows_left;
    logic [15:0] accumulator;
    logic [15:0] count;
    logic [31:0] address;
    store_flags_t flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } store_t;

  typedef struct packed {
    logic [127:0] unused_128;
    logic [31:0] wrap_n;
    logic [31:0] wrap_y;
    logic [31:0] step_x;
    logic [15:0] flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } set_operand_t;

  typedef struct packed {
    logic [14:0] unused_17;
    logic narrow;
  } vector_load_flags_t;
  typedef struct packed {
    logic [111:0] unused_144;
    logic [15:0] columns;
    logic [15:0] count;
    logic [15:0] row;
    logic [31:0] pitch;
    logic [31:0] address;
    vector_load_flags_t flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } vector_load_t;

  typedef struct packed {
    logic [14:0] unused_17;
    logic narrow;
  } vector_store_flags_t;
  typedef struct packed {
    logic [111:0] unused_144;
    logic [15:0] columns;
    logic [15:0] count;
    logic [15:0] row;
    logic [31:0] pitch;
    logic [31:0] address;
    vector_store_flags_t flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } vector_store_t;

  typedef struct packed {
    logic [13:0] unused_18;
    logic constant;
    logic accumulators;
  } vector_op_flags_t;
  typedef struct packed {
    logic [31:0] unused_224;
    logic [31:0] scalar;
    logic [10:0] unused_181;
    logic [4:0] operation;
    logic [15:0] count;
    logic [15:0] c_step;
    logic [15:0] c;
    logic [15:0] b_step;
    logic [15:0] b;
    logic [15:0] a_step;
    logic [15:0] a;
    logic [15:0] step;
    logic [15:0] destination;
    vector_op_flags_t flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } vector_op_t;

  typedef struct packed {
    logic [223:0] unused_32;
    logic [15:0] flags;
    logic [3:0] signal;
    logic [3:0] wait_mask;
    logic [7:0] opcode;
  } instruction_t;
endpackage
