#include "decoder/pt/decoder.h"

namespace tailtrace::pt {

namespace {

// From Intel's specification updates; an erratum is named after the first update it appeared in.
struct ModelErrata {
  std::uint8_t model;
  Errata errata;
};

constexpr Errata kBroadwell{.bdm70 = true, .bdm64 = true};
constexpr Errata kSkylake{
    .bdm70 = true, .skd007 = true, .skd022 = true, .skd010 = true, .skl014 = true, .skl168 = true};
constexpr Errata kIceLake{.bdm70 = true, .skd022 = true, .skl014 = true};
constexpr Errata kServer{.bdm70 = true, .skd022 = true, .skl014 = true, .skz84 = true};
constexpr Errata kGoldmont{.apl12 = true, .apl11 = true};
constexpr Errata kTremont{.apl11 = true};
constexpr Errata kAlderLake{.bdm70 = true, .skd022 = true, .skl014 = true, .apl11 = true};

constexpr ModelErrata kFamily6[] = {
    {0x3d, kBroadwell}, {0x47, kBroadwell}, {0x4f, kBroadwell}, {0x56, kBroadwell},
    {0x4e, kSkylake},   {0x5e, kSkylake},   {0x8e, kSkylake},   {0x9e, kSkylake},
    {0xa5, kSkylake},   {0xa6, kSkylake},   {0x66, kIceLake},   {0x7d, kIceLake},
    {0x7e, kIceLake},   {0x8c, kIceLake},   {0x8d, kIceLake},   {0xa7, kIceLake},
    {0xa8, kIceLake},   {0x55, kServer},    {0x6a, kServer},    {0x6c, kServer},
    {0x8f, kServer},    {0xad, kServer},    {0xae, kServer},    {0xcf, kServer},
    {0x5c, kGoldmont},  {0x5f, kGoldmont},  {0x7a, kTremont},   {0x86, kTremont},
    {0x96, kTremont},   {0x9c, kTremont},   {0xaf, kTremont},   {0xb6, kTremont},
    {0xdd, kTremont},   {0x97, kAlderLake}, {0x9a, kAlderLake}, {0xaa, kAlderLake},
    {0xac, kAlderLake}, {0xb5, kAlderLake}, {0xb7, kAlderLake}, {0xba, kAlderLake},
    {0xbd, kAlderLake}, {0xbf, kAlderLake}, {0xc5, kAlderLake}, {0xc6, kAlderLake},
    {0xcc, kAlderLake},
};
constexpr ModelErrata kFamily19[] = {{0x01, kServer}};

const Errata* find_errata(Cpu cpu) {
  std::span<const ModelErrata> models;
  if (cpu.family == 6) models = kFamily6;
  if (cpu.family == 19) models = kFamily19;
  for (const ModelErrata& m : models)
    if (m.model == cpu.model) return &m.errata;
  return nullptr;
}

}  // namespace

Errata errata_of(Cpu cpu) {
  const Errata* errata = find_errata(cpu);
  return errata != nullptr ? *errata : Errata{};
}

bool is_known(Cpu cpu) { return cpu.family == 0 || find_errata(cpu) != nullptr; }

std::string_view error_text(DecodeError error) {
  switch (error) {
    case DecodeError::kNoSync:
      return "there is no point to begin at";
    case DecodeError::kBadOpcode:
      return "bytes that are no packet";
    case DecodeError::kBadPacket:
      return "a packet with an impossible payload";
    case DecodeError::kCutPacket:
      return "the trace ends inside a packet";
    case DecodeError::kBadContext:
      return "a packet where it cannot be";
    case DecodeError::kBadQuery:
      return "the code needs another packet than the one that comes next";
    case DecodeError::kNoCode:
      return "the bytes of an executed instruction are not known";
    case DecodeError::kNarrowCode:
      return "the code is of 32 or 16 bits";
    case DecodeError::kBadInstruction:
      return "the bytes of an executed instruction are no instruction";
    case DecodeError::kNoIp:
      return "the target of a branch was not recorded";
    case DecodeError::kNoEnable:
      return "a packet that needs code while tracing is disabled";
    case DecodeError::kBadReturn:
      return "a compressed return that is marked as not taken";
    case DecodeError::kReturnStackEmpty:
      return "a compressed return without its call";
    case DecodeError::kBadStatusUpdate:
      return "a status that contradicts what was decoded";
    case DecodeError::kEventIgnored:
      return "an event that binds to nothing";
    case DecodeError::kEndlessLoop:
      return "code that loops for ever without a packet";
    case DecodeError::kTooMuch:
      return "a limit of the decoder was reached";
  }
  return "unknown";
}

GapCause gap_cause(DecodeError error) {
  switch (error) {
    case DecodeError::kNoCode:
      return GapCause::kNoCode;
    case DecodeError::kNarrowCode:
      return GapCause::kNarrowCode;
    case DecodeError::kBadInstruction:
      return GapCause::kBadInstruction;
    case DecodeError::kCutPacket:
      return GapCause::kTruncated;
    default:
      return GapCause::kBadTrace;
  }
}

}  // namespace tailtrace::pt
