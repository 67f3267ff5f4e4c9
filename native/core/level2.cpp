#define O2_LEVEL 2
#include "core/level.inl"
