#define O2_LEVEL 1
#include "core/level.inl"
