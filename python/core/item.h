// The Python types Instruction and Gap: one item of a history each.
//
// They are plain objects of the interpreter's own kind and not pybind11's, for a history is walked
// item by item and each costs an allocation and nothing else. What takes more (text, bytes, names)
// is worked out when it is asked for.
//
// Threading: the caller holds the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

#include "decoder/history/history.h"

namespace tailtrace::python {

// What an item's object holds.
struct Item {
  std::uint64_t number = 0;  // History::kNewest is the newest
  Address address;           // 0: not known, of gaps only
  Address target;            // of direct branches, else 0
  Address to;                // where control went; 0 when it fell through or that is not known
  std::uint64_t record = 0;
  std::uint64_t time = 0;
  std::uint64_t lost = 0;  // of gaps, as `reason` and `lost_more` are
  Epoch epoch;
  std::uint8_t size_bytes = 0;
  InstructionClass kind = InstructionClass::kOther;
  RecordKind branch = RecordKind::kNone;  // kNone: no record tells of a transfer
  GapReason reason = GapReason::kNone;    // kNone: an instruction
  bool lost_more = false;

  static Item of(const HistoryItem& item);
  bool is_gap() const { return reason != GapReason::kNone; }
};

// A new Instruction or Gap. `history` is the Python object of the ThreadHistory it is of.
pybind11::object make_item(const Item& item, pybind11::handle history);

void bind_items(pybind11::module_& module);

}  // namespace tailtrace::python
