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

}  // namespace

std::optional<EngineChoice> best_hardware() {
  for (EngineChoice choice : {EngineChoice::kPt, EngineChoice::kBts})
    if (perf::try_hardware(perf::real_kernel(), *hardware_of(choice))) return choice;
  return std::nullopt;
}

Result<void> check_engine(const ServeOptions& options) {
  std::optional<Hardware> hardware = hardware_of(options.engine);
  if (!hardware) return {};
  return perf::try_hardware(perf::real_kernel(), *hardware);
}

ChosenEngine choose_engine(const ServeOptions& options, const std::string& folder, Below& below) {
  EngineChoice choice = options.engine;
  if (choice == EngineChoice::kAuto) choice = best_hardware().value_or(EngineChoice::kStep);
  std::optional<Hardware> hardware = hardware_of(choice);
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
