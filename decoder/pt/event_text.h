// Events and gaps of a PT decoder as one line of text each, in brackets, in the words of ptxed.
//
// Threading: one thread at a time.
#pragma once

#include <string>
#include <vector>

#include "decoder/pt/decoder.h"

namespace tailtrace::pt {

class EventText {
 public:
  // With addresses: "[interrupt, from: 0000000000401000, to: 0000000000401020]".
  explicit EventText(bool with_addresses = false) : with_addresses_(with_addresses) {}

  // "[enabled]", "[ptwrite: 1234]", ...; empty for what is not shown: repetitions of what holds,
  // and event data, which become part of the line of the event they belong to.
  std::string of(const Event& event);

  // "[OFFSET, IP: error: no memory mapped at this address]", in hexadecimal.
  std::string of(const Gap& gap);

  // A name without spaces for machines: "enabled", "async-disabled", ...
  static std::string_view name(EventKind kind);

  // The event data that are part of the event that of() was asked for last, if that takes any; else
  // those that wait for theirs.
  const std::vector<Event>& data() const { return data_; }

 private:
  std::string control_flow(const Event& event) const;
  std::string words(const Event& event) const;

  bool with_addresses_;
  std::vector<Event> data_;  // EVDs that wait for their CFE, or are part of the last one
  bool is_taken_ = false;    // the latter
};

}  // namespace tailtrace::pt
