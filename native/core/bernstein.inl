#include <cmath>

#include "core/bernstein.hpp"
#include "core/math.hpp"

namespace o2 {
namespace {

void bet_costs(double* __restrict bets, double* __restrict costs, int64_t n, double first, double log_inverse) {
  constexpr double LARGEST_BET = 0.5;
  for (int i = 0; i < static_cast<int>(n); i++) {  // conversions of longer integers do not vectorise at every level
    const double t = first + static_cast<double>(i) + 1.0;
    const double bet = std::sqrt(2.0 * log_inverse / (bets[i] * t * log_of(1.0 + t)));
    bets[i] = bet < LARGEST_BET ? bet : LARGEST_BET;
    costs[i] *= -log1p_of(-bets[i]) - bets[i];
  }
}

}  // namespace

const BetCosts O2_TABLE(bet_costs) = bet_costs;

}  // namespace o2
