// Everything that is compiled once per level of instructions: level1.cpp, level2.cpp and level3.cpp include this file.
// The files below may include no header with code that other files compile too: the linker could pick their copies,
// which run on newer machines only.
#include "core/simd.hpp"
#include "core/features.inl"
