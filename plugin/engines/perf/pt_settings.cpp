#include "plugin/engines/perf/pt_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "plugin/engines/perf/event.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kShortestPsbPeriod_bytes = 2048;
constexpr std::uint64_t kStartsWanted = 8;
// 4 KiB, a quarter of what perf takes: for any record all from one PSB to the next is decoded. Each
// takes some 40 bytes.
constexpr std::uint8_t kLongestDefault = 1;

// What a setting needs of caps/ in sysfs: to be 1, or to have a bit for its value. The kernel says
// EINVAL to the rest, whichever it was (pt_event_valid() in arch/x86/events/intel/pt.c).
enum class Needs { kNothing, kCap, kBit };

struct Wish {
  bool wished;
  const char* field;
  std::uint64_t value;
  Needs needs = Needs::kNothing;
  const char* cap = "";
};

struct Setting {
  std::string_view name;
  std::uint64_t most;
  void (*apply)(PerfConfig& config, std::uint8_t value);
};

constexpr Setting kSettings[] = {
    {"tsc", 1, [](PerfConfig& config, std::uint8_t value) { config.tsc = value != 0; }},
    {"cyc", 1, [](PerfConfig& config, std::uint8_t value) { config.cyc = value != 0; }},
    {"cyc_thresh", 15,
     [](PerfConfig& config, std::uint8_t value) {
       config.cyc = true;
       config.cyc_threshold = value;
     }},
    {"mtc", 1, [](PerfConfig& config, std::uint8_t value) { config.mtc = value != 0; }},
    {"mtc_period", 15,
     [](PerfConfig& config, std::uint8_t value) {
       config.mtc = true;
       config.mtc_period = value;
     }},
    {"psb_period", 15, [](PerfConfig& config, std::uint8_t value) { config.psb_period = value; }},
    {"ptw", 1, [](PerfConfig& config, std::uint8_t value) { config.ptwrite = value != 0; }},
    {"event", 1, [](PerfConfig& config, std::uint8_t value) { config.event_trace = value != 0; }},
    {"noretcomp", 1,
     [](PerfConfig& config, std::uint8_t value) { config.return_compression = value == 0; }},
};

std::string names_of_settings() {
  std::string names;
  for (const Setting& setting : kSettings)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", setting.name);
  return names;
}

Result<void> apply_one(std::string_view word, PerfConfig& config) {
  const auto equals = static_cast<std::size_t>(std::ranges::find(word, '=') - word.begin());
  const std::string_view name = word.substr(0, equals);
  const std::string_view digits = equals < word.size() ? word.substr(equals + 1) : "1";
  const auto* setting = std::ranges::find(kSettings, name, &Setting::name);
  if (setting == std::end(kSettings))
    return fail(ErrorCode::kUsage, fmt::format("there is no setting \"{}\" of Intel PT", name), "",
                names_of_settings());
  std::uint8_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value > setting->most)
    return fail(ErrorCode::kUsage, fmt::format("cannot set {} of Intel PT to \"{}\"", name, digits),
                fmt::format("it is a number from 0 to {}", setting->most));
  setting->apply(config, value);
  return {};
}

std::string values_in(std::uint64_t bits) {
  std::string values;
  for (int value = 0; value < 64; ++value)
    if ((bits >> value & 1) != 0) values += fmt::format("{}{}", values.empty() ? "" : ", ", value);
  return values.empty() ? "none" : values;
}

// Kernels without that file do not tell: then they are asked.
Result<void> check_cap(const PmuDescription& pmu, const Wish& wish) {
  const auto cap = pmu.cap(wish.cap);
  if (wish.needs == Needs::kNothing || !cap) return {};
  if (wish.needs == Needs::kCap && *cap == 0)
    return fail(ErrorCode::kNoEngine, fmt::format("cannot set {} of {}", wish.field, pmu.name),
                fmt::format("this processor cannot do it: caps/{} is 0", wish.cap),
                fmt::format("do without {}", wish.field));
  if (wish.needs == Needs::kBit && (*cap >> wish.value & 1) == 0)
    return fail(ErrorCode::kNoEngine,
                fmt::format("cannot set {} of {} to {}", wish.field, pmu.name, wish.value),
                fmt::format("caps/{} of this processor has {}", wish.cap, values_in(*cap)),
                "one of those");
  return {};
}

}  // namespace

Result<void> apply_pt_settings(std::string_view settings, PerfConfig& config) {
  while (!settings.empty()) {
    const std::size_t comma = std::min(settings.find(','), settings.size());
    if (auto ok = apply_one(settings.substr(0, comma), config); !ok) return ok;
    settings.remove_prefix(std::min(comma + 1, settings.size()));
  }
  return {};
}

std::uint8_t psb_period_for(const PmuDescription& pmu, std::uint64_t buffer_bytes) {
  std::uint64_t periods = pmu.cap("psb_periods").value_or(0);
  for (std::uint8_t n = kLongestDefault; n > 0; --n)
    if ((periods >> n & 1) != 0 && kStartsWanted * (kShortestPsbPeriod_bytes << n) <= buffer_bytes)
      return n;
  return 0;  // always allowed
}

Result<perf_event_attr> pt_attr(const PmuDescription& pmu, const PerfConfig& config,
                                std::uint64_t buffer_bytes) {
  perf_event_attr attr = plain_attr(pmu.type, 0);
  attr.exclude_kernel = config.kernel ? 0 : 1;
  // What else belongs to the event has to be there before it is enabled.
  const bool more = !config.filters.empty() || config.resume_at || config.pause_at;
  attr.disabled = more || config.trial ? 1 : 0;
  if (config.resume_at) set_aux_action(attr, AuxAction::kStartPaused);
  std::uint8_t psb = config.psb_period.value_or(psb_period_for(pmu, buffer_bytes));
  const Wish wishes[] = {
      // Old kernels have no such bits: there branches are always traced.
      {pmu.fields.contains("pt"), "pt", 1},
      {pmu.fields.contains("branch"), "branch", 1},
      {config.tsc, "tsc", 1},
      {config.cyc, "cyc", 1, Needs::kCap, "psb_cyc"},
      {config.cyc && config.cyc_threshold != 0, "cyc_thresh", config.cyc_threshold, Needs::kBit,
       "cycle_thresholds"},
      {config.mtc, "mtc", 1, Needs::kCap, "mtc"},
      {config.mtc, "mtc_period", config.mtc_period, Needs::kBit, "mtc_periods"},
      {psb != 0, "psb_period", psb, Needs::kBit, "psb_periods"},
      {config.ptwrite, "ptw", 1, Needs::kCap, "ptwrite"},
      {config.ptwrite, "fup_on_ptw", 1, Needs::kCap, "ptwrite"},
      {config.event_trace, "event", 1, Needs::kCap, "event_trace"},
      {!config.return_compression, "noretcomp", 1},
  };
  for (const Wish& wish : wishes) {
    if (!wish.wished) continue;
    auto set = pmu.set(attr, wish.field, wish.value);
    if (set) set = check_cap(pmu, wish);
    if (!set) return fail(std::move(set.error()));
  }
  return attr;
}

Result<bool> set_filters(Event& event, const PerfConfig& config) {
  std::string all;
  for (const std::string& filter : config.filters)
    if (!filter.empty()) all += (all.empty() ? "" : ",") + filter;
  if (all.empty()) return config.filters.empty();
  if (auto ok = event.set_filter(all); !ok) return fail(std::move(ok.error()));
  return true;
}

pt::DecoderConfig pt_decoder_config(const Processor& cpu, const PmuDescription& pmu,
                                    const PerfConfig& config) {
  pt::DecoderConfig decoder;
  decoder.only_64_bit_code = true;
  if (cpu.vendor == "GenuineIntel")
    decoder.cpu = {static_cast<std::uint16_t>(cpu.family), static_cast<std::uint8_t>(cpu.model),
                   static_cast<std::uint8_t>(cpu.stepping)};
  decoder.errata = pt::errata_of(decoder.cpu);
  if (config.mtc) decoder.timing.mtc_period = config.mtc_period;
  decoder.timing.nominal_ratio =
      static_cast<std::uint8_t>(pmu.number("max_nonturbo_ratio").value_or(0));
  if (auto ratio = pmu.ratio("tsc_art_ratio")) {
    decoder.timing.cpuid_15_ebx = ratio->first;
    decoder.timing.cpuid_15_eax = ratio->second;
  }
  return decoder;
}

}  // namespace tailtrace::perf
