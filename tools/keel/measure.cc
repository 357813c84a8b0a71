#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace keel::cli {
namespace {

constexpr double kRoundNs = 10e6;
constexpr std::uint64_t kWarmUp = 4;  // a fourth of a round
constexpr std::uint64_t kMostOperations = 1 << 24;

Result<double> TimeNs(const std::function<Status(std::uint64_t)>& body, std::uint64_t count) {
  const auto began = std::chrono::steady_clock::now();
  KEEL_TRY(body(count));
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count();
}

// So many that a round takes about as long as it should.
Result<std::uint64_t> Calibrate(const std::function<Status(std::uint64_t)>& body) {
  KEEL_TRY(body(1));  // what the first one makes, the others find
  std::uint64_t count = 1;
  while (true) {
    KEEL_ASSIGN(const double took, TimeNs(body, count));
    if (took >= kRoundNs / 4 || count >= kMostOperations) {
      const double wanted = static_cast<double>(count) * kRoundNs / std::max(took, 1.0);
      return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, kMostOperations);
    }
    count *= 4;
  }
}

// A way to do something, so often that a round takes as long as it should.
struct Way {
  static Result<Way> Of(const std::function<Status(std::uint64_t)>& body) {
    KEEL_ASSIGN(const std::uint64_t count, Calibrate(body));
    return Way{.body = &body, .count = count};
  }
  // Of one operation, in one round.
  Result<double> OnceNs() const {
    // Threads that sleep while another way is measured wake where they fell asleep, and find their
    // place again.
    KEEL_TRY((*body)(count / kWarmUp + 1));
    KEEL_ASSIGN(const double took, TimeNs(*body, count));
    return took / static_cast<double>(count);
  }

  const std::function<Status(std::uint64_t)>* body;
  std::uint64_t count;
};

}  // namespace

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<std::vector<double>> MediansNs(
    const std::vector<std::function<Status(std::uint64_t count)>>& bodies, int turns) {
  std::vector<Way> ways;
  for (const auto& body : bodies) {
    KEEL_ASSIGN(const Way way, Way::Of(body));
    ways.push_back(way);
  }
  std::vector<std::vector<double>> rounds(bodies.size());
  for (int round = 0; round < turns; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      KEEL_ASSIGN(const double took, ways[i].OnceNs());
      rounds[i].push_back(took);
    }
  }
  std::vector<double> medians;
  medians.reserve(bodies.size());
  for (std::vector<double>& each : rounds) medians.push_back(Median(std::move(each)));
  return medians;
}

Result<std::vector<Compared>> CompareNs(
    const std::function<Status(std::uint64_t count)>& base,
    const std::vector<std::function<Status(std::uint64_t count)>>& bodies, int turns) {
  KEEL_ASSIGN(const Way base_way, Way::Of(base));
  std::vector<Way> ways;
  for (const auto& body : bodies) {
    KEEL_ASSIGN(const Way way, Way::Of(body));
    ways.push_back(way);
  }
  struct Rounds {
    std::vector<double> ns;
    std::vector<double> base_ns;
    std::vector<double> ratio;
  };
  std::vector<Rounds> rounds(bodies.size());
  for (int round = 0; round < turns; ++round) {
    KEEL_ASSIGN(double before, base_way.OnceNs());
    for (std::size_t i = 0; i < ways.size(); ++i) {
      KEEL_ASSIGN(const double took, ways[i].OnceNs());
      KEEL_ASSIGN(const double after, base_way.OnceNs());
      const double beside = (before + after) / 2;
      rounds[i].ns.push_back(took);
      rounds[i].base_ns.push_back(beside);
      rounds[i].ratio.push_back(took / beside);
      before = after;
    }
  }
  std::vector<Compared> compared;
  compared.reserve(rounds.size());
  for (Rounds& each : rounds) {
    compared.push_back({.ns = Median(std::move(each.ns)),
                        .base_ns = Median(std::move(each.base_ns)),
                        .ratio = Median(std::move(each.ratio))});
  }
  return compared;
}

Result<double> MedianNs(const std::function<Status(std::uint64_t count)>& body) {
  KEEL_ASSIGN(const std::vector<double> medians, MediansNs({body}));
  return medians.front();
}

}  // namespace keel::cli
