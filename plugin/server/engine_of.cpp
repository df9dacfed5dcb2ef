#include "plugin/server/engine_of.h"

#include "plugin/engines/perf/perf_engine.h"

namespace tailtrace {
namespace {

using perf::Hardware;

std::optional<Hardware> hardware_of(EngineChoice choice) {
  switch (choice) {
    case EngineChoice::kPt:
      return Hardware::kPt;
    case EngineChoice::kBts:
      return Hardware::kBts;
    case EngineChoice::kLbr:
      return Hardware::kLbr;
    default:
      return std::nullopt;
  }
}

// Whole histories only: last branch records are a short tail, taken when asked for by name.
std::optional<Hardware> best_that_works() {
  for (Hardware hardware : {Hardware::kPt, Hardware::kBts})
    if (perf::try_hardware(perf::real_kernel(), hardware)) return hardware;
  return std::nullopt;
}

}  // namespace

Result<void> check_engine(const ServeOptions& options) {
  std::optional<Hardware> hardware = hardware_of(options.engine);
  if (!hardware) return {};
  return perf::try_hardware(perf::real_kernel(), *hardware);
}

ChosenEngine choose_engine(const ServeOptions& options, const std::string& folder, Below& below) {
  std::optional<Hardware> hardware = hardware_of(options.engine);
  if (options.engine == EngineChoice::kAuto) hardware = best_that_works();
  if (hardware) {
    perf::PerfConfig config;
    config.records.ring_records = options.ring_records;
    return ChosenEngine{
        std::make_unique<perf::PerfEngine>(perf::real_kernel(), *hardware, std::move(config)),
        nullptr};
  }
  auto step = std::make_unique<StepEngine>(
      folder, EngineConfig{options.ring_records},
      [&below](ThreadId thread, Address address, std::span<std::uint8_t> out) {
        return below.read_memory(thread, address, out);
      });
  StepEngine* told = step.get();
  return ChosenEngine{std::move(step), told};
}

}  // namespace tailtrace
