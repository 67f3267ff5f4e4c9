namespace o2 {
namespace {

void cosines(const float* __restrict angles, int64_t n, float* __restrict out) {
  constexpr double ROOT = 1.41421356237309504880;
  float farthest = 0;
  for (int64_t i = 0; i < n; i++) {
    const float size = angles[i] < 0 ? -angles[i] : angles[i];
    farthest = size <= farthest ? farthest : size;  // NaN is farthest
  }
  if (farthest <= 0x1p20f)
    for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(ROOT * cos_near(static_cast<double>(angles[i])));
  else
    for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(ROOT * cos_of(static_cast<double>(angles[i])));
}

}  // namespace
}  // namespace o2
