#include "tests/support/legal_program.h"

#include <iterator>

namespace tailtrace::pt {

struct LegalForm {
  const char* hex;
  InstructionClass kind;
  unsigned modes = ~0u;
  unsigned distance_bytes = 0;  // of direct branches; the last bytes
  unsigned weight = 1;
  bool loads_vmcs = false;
};

namespace {

using Kind = InstructionClass;

constexpr unsigned k16 = 1, k32 = 2, k64 = 4, kAll = k16 | k32 | k64;

// SDM volume 2; in the order of InstructionClass.
constexpr LegalForm kForms[] = {
    {"90", Kind::kOther, kAll, 0, 8},
    {"89d8", Kind::kOther},
    {"0f01c9", Kind::kOther},  // MWAIT
    {"0f01d5", Kind::kOther},  // XEND
    {"fb", Kind::kOther},      // STI
    {"0fc730", Kind::kOther, kAll, 0, 1, true},
    {"f3a4", Kind::kRepString},
    {"7500", Kind::kConditional, kAll, 1, 5},
    {"e200", Kind::kConditional, kAll, 1},
    {"e300", Kind::kConditional, kAll, 1},
    {"0f840000", Kind::kConditional, k16, 2},
    {"0f8400000000", Kind::kConditional, k32 | k64, 4},
    {"eb00", Kind::kJump, kAll, 1, 2},
    {"e90000", Kind::kJump, k16, 2},
    {"e900000000", Kind::kJump, k32 | k64, 4},
    {"e80000", Kind::kCall, k16, 2, 3},
    {"e800000000", Kind::kCall, k32 | k64, 4, 3},
    {"ffe0", Kind::kIndirectJump, kAll, 0, 2},
    {"ffa000010000", Kind::kIndirectJump, k32 | k64},
    {"ff242500000000", Kind::kIndirectJump, k64},
    {"41ffe6", Kind::kIndirectJump, k64},
    {"3effe0", Kind::kIndirectJump},
    {"ffd0", Kind::kIndirectCall},
    {"41ff5608", Kind::kIndirectCall, k64},
    {"ff10", Kind::kIndirectCall},
    {"c3", Kind::kReturn, kAll, 0, 3},
    {"c20800", Kind::kReturn},
    {"f3c3", Kind::kReturn},
    {"f2c3", Kind::kReturn},
    {"ff28", Kind::kFarJump},
    {"ea01020304", Kind::kFarJump, k16},
    {"ff18", Kind::kFarCall},
    {"9a010203040506", Kind::kFarCall, k32},
    {"cb", Kind::kFarReturn},
    {"ca0400", Kind::kFarReturn},
    {"cf", Kind::kFarReturn},
    {"48cf", Kind::kFarReturn, k64},
    {"cd80", Kind::kSystemCall},
    {"cc", Kind::kSystemCall},
    {"ce", Kind::kSystemCall, k16 | k32},
    {"0f05", Kind::kSystemCall},
    {"0f34", Kind::kSystemCall},
    {"0f35", Kind::kSystemReturn, k16 | k32},
    {"480f07", Kind::kSystemReturn, k64},
    {"0f01c2", Kind::kVmEntry},
    {"0f01c3", Kind::kVmEntry},
    {"0f01c1", Kind::kVmCall},
    {"0f22d8", Kind::kMovCr3},
    {"410f22de", Kind::kMovCr3, k64},
    {"f30faee0", Kind::kPtwrite},
};

unsigned bit_of(CodeMode mode) {
  return mode == CodeMode::k16 ? k16 : mode == CodeMode::k32 ? k32 : k64;
}

const LegalForm& pick_form(Choices& choices, CodeMode mode, bool virtualizes) {
  auto weight = [&](const LegalForm& form) {
    bool of_vm = form.kind == Kind::kVmEntry || form.kind == Kind::kVmCall;
    return (form.modes & bit_of(mode)) == 0 || (of_vm && !virtualizes) ? 0 : form.weight;
  };
  unsigned all = 0;
  for (const LegalForm& form : kForms) all += weight(form);
  unsigned at = choices.below(all);
  for (const LegalForm& form : kForms) {
    if (at < weight(form)) return form;
    at -= weight(form);
  }
  return kForms[0];
}

}  // namespace

struct LegalProgram::Draft {
  const LegalForm* form;
  std::uint64_t ip;
  Bytes bytes;
};

LegalProgram::LegalProgram(Choices& choices) : virtualizes_(choices.one_in(4)) {
  add_region(choices, 0x7f0000401000, CodeMode::k64);
  if (choices.one_in(3))
    add_region(choices, 0x7f0000410000 + (std::uint64_t{choices.below(64)} << 20), CodeMode::k64);
  if (choices.one_in(3)) add_region(choices, 0x500000, CodeMode::k64);
  if (choices.one_in(2)) add_region(choices, 0x8048000, CodeMode::k32);
  if (choices.one_in(3)) add_region(choices, 0x1000, CodeMode::k16);
}

void LegalProgram::add_region(Choices& choices, std::uint64_t base, CodeMode mode) {
  Region region{base, mode, {}, {}};
  std::vector<Draft> drafts;
  std::uint64_t ip = base;
  auto add = [&](const LegalForm& form) {
    drafts.push_back({&form, ip, *from_hex(form.hex)});
    region.starts.push_back(ip);
    ip += drafts.back().bytes.size();
  };
  for (unsigned count = 12 + choices.below(50); count != 0; --count)
    add(pick_form(choices, mode, virtualizes_));
  // Nothing runs off the end.
  static constexpr LegalForm kLast{"ffe0", Kind::kIndirectJump};
  add(kLast);
  write(choices, region, drafts);
  regions_.push_back(std::move(region));
}

// Jumps and calls lead forwards: without a packet no code runs for ever.
void LegalProgram::write(Choices& choices, Region& region, const std::vector<Draft>& drafts) {
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const LegalForm& form = *drafts[i].form;
    Bytes bytes = drafts[i].bytes;
    std::uint64_t next = drafts[i].ip + bytes.size(), target = 0;
    if (form.distance_bytes != 0) {
      std::vector<std::uint64_t> reached;
      for (std::size_t to = form.kind == Kind::kConditional ? 0 : i + 1; to < drafts.size(); ++to) {
        auto distance = static_cast<std::int64_t>(drafts[to].ip - next);
        if (form.distance_bytes > 1 || (distance >= -128 && distance <= 127))
          reached.push_back(drafts[to].ip);
      }
      target = reached[choices.below(static_cast<unsigned>(reached.size()))];
      if (form.kind == Kind::kCall && choices.one_in(5)) target = next;
      for (unsigned k = 0; k < form.distance_bytes; ++k)
        bytes[bytes.size() - form.distance_bytes + k] =
            static_cast<std::uint8_t>((target - next) >> (8 * k));
    }
    code_[drafts[i].ip] = {form.kind, static_cast<std::uint8_t>(bytes.size()), form.loads_vmcs,
                           target};
    region.bytes.insert(region.bytes.end(), bytes.begin(), bytes.end());
  }
}

std::uint64_t LegalProgram::pick(Choices& choices, CodeMode mode) const {
  std::vector<const Region*> of_mode;
  for (const Region& region : regions_)
    if (region.mode == mode) of_mode.push_back(&region);
  const Region& region = *of_mode[choices.below(static_cast<unsigned>(of_mode.size()))];
  return region.starts[choices.below(static_cast<unsigned>(region.starts.size()))];
}

}  // namespace tailtrace::pt
