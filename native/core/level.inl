// Everything that is compiled once per level of instructions: level1.cpp, level2.cpp and level3.cpp include this file.
// The files below may include no header with code that other files compile too: the linker could pick their copies,
// which run on newer machines only.
#include "core/simd.hpp"

#define O2_JOINED(name, level) name##_##level
#define O2_NAMED(name, level) O2_JOINED(name, level)
#define O2_TABLE(name) O2_NAMED(name, O2_LEVEL)  // dense_1, dense_2, dense_3

#include "core/bernstein.inl"
#include "core/bets.inl"
#include "core/sums.inl"
#include "core/shrinking.inl"
#include "core/sparse.inl"
#include "core/acting.inl"
#include "core/double_rows.inl"
#include "core/gaussian.inl"
#include "core/vector.inl"
#include "core/actionwise.inl"
#include "core/running_control.inl"
#include "core/dense.inl"
#include "core/features.inl"
#include "core/deciding.inl"
#include "core/outcome.inl"
#include "core/lbfgs.inl"
