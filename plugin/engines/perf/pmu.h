// A PMU as sysfs describes it: its number, where in `config` its settings stand, and what it can.
// Nothing about the layout is taken for granted; kernels and hypervisors may leave things out.
//
// Threading: values.
#pragma once

#include <linux/perf_event.h>

#include <map>
#include <optional>
#include <string>

#include "decoder/base/result.h"

namespace tailtrace::perf {

struct PmuField {
  int word = 0;  // 0: config, 1: config1, 2: config2
  unsigned first_bit = 0, last_bit = 0;
};

// The text of a file under format/: "config:14-17" or "config1:3".
std::optional<PmuField> parse_field(const std::string& text);

struct PmuDescription {
  std::string name;
  std::uint32_t type = 0;
  std::map<std::string, PmuField> fields;
  std::map<std::string, std::string> caps;  // as written, mostly hexadecimal

  std::map<std::string, std::string> attributes;  // the other files of its folder

  // An attribute in decimal, as "36"; as "294:2".
  std::optional<std::uint64_t> number(const std::string& attribute) const;
  std::optional<std::pair<std::uint32_t, std::uint32_t>> ratio(const std::string& attribute) const;

  // A capability as a number; nothing when it is not there or is none.
  std::optional<std::uint64_t> cap(const std::string& cap_name) const;

  // Puts a value into the field of this name.
  // Errors: kNoEngine when this PMU has no such field, kUsage when the value does not fit.
  Result<void> set(perf_event_attr& attr, const std::string& field, std::uint64_t value) const;
};

// `root` stands in front of /sys. Errors: kNoEngine when there is no such PMU.
Result<PmuDescription> read_pmu(const std::string& root, const std::string& name);

}  // namespace tailtrace::perf
