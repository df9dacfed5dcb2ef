#include "plugin/engines/perf/pt_settings.h"

#include <algorithm>
#include <charconv>

#include "plugin/engines/perf/event.h"

namespace tailtrace::perf {
namespace {

constexpr std::uint64_t kShortestPsbPeriod_bytes = 2048;
constexpr std::uint64_t kStartsWanted = 8;
constexpr std::uint8_t kLongestDefault = 3;  // 16 KiB, as perf has it

struct Wish {
  bool wished;
  const char* field;
  std::uint64_t value;
};

}  // namespace

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
      {config.cyc, "cyc", 1},
      {config.mtc, "mtc", 1},
      {config.mtc, "mtc_period", config.mtc_period},
      {psb != 0, "psb_period", psb},
      {config.ptwrite, "ptw", 1},
      {config.ptwrite, "fup_on_ptw", 1},
      {config.event_trace, "event", 1},
      {!config.return_compression, "noretcomp", 1},
  };
  for (const Wish& wish : wishes)
    if (wish.wished)
      if (auto ok = pmu.set(attr, wish.field, wish.value); !ok) return fail(std::move(ok.error()));
  return attr;
}

std::string joined_filters(const PerfConfig& config) {
  std::string all;
  for (const std::string& filter : config.filters) all += (all.empty() ? "" : ",") + filter;
  return all;
}

pt::DecoderConfig pt_decoder_config(const Processor& cpu, const PmuDescription& pmu,
                                    const PerfConfig& config) {
  pt::DecoderConfig decoder;
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
