// What an Intel PT event is opened with: the user's wishes, as far as the processor has them.
//
// Threading: functions.
#pragma once

#include "decoder/pt/decoder.h"
#include "plugin/engines/machine.h"
#include "plugin/engines/perf/pmu.h"
#include "plugin/engines/perf/thread_recorder.h"

namespace tailtrace::perf {

// How often a decoder can start, for a buffer of this size: eight times at least, if the processor
// can do it that often.
std::uint8_t psb_period_for(const PmuDescription& pmu, std::uint64_t buffer_bytes);

// Puts settings into a configuration, named as sysfs names them and separated by commas:
// "cyc,mtc_period=5,psb_period=0". What has no value is switched on. There are tsc, cyc,
// cyc_thresh, mtc, mtc_period, psb_period, ptw, event and noretcomp. Errors: kUsage.
Result<void> apply_pt_settings(std::string_view settings, PerfConfig& config);

// Errors: kNoEngine for a wish that the processor does not have, by name, with what sysfs says.
Result<perf_event_attr> pt_attr(const PmuDescription& pmu, const PerfConfig& config,
                                std::uint64_t buffer_bytes);

// Gives an event the address filters that are there. Returns whether anything is to be recorded
// yet: not where all filters come later. Errors: all that explain() tells.
Result<bool> set_filters(Event& event, const PerfConfig& config);

// What a decoder must know of the processor and of the event.
pt::DecoderConfig pt_decoder_config(const Processor& cpu, const PmuDescription& pmu,
                                    const PerfConfig& config);

}  // namespace tailtrace::perf
