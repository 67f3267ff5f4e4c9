#define O2_LEVEL 3
#include "core/level.inl"
