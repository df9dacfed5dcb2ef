#include "plugin/cli/hit_report.h"

#include <asm/perf_regs.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "decoder/base/text.h"
#include "decoder/symbols/mapping.h"
#include "decoder/symbols/process_symbols.h"

namespace tailtrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Register {
  unsigned bit;
  const char* name;
};
// In the order of the bits, which is that of the values.
constexpr Register kRegisters[] = {
    {PERF_REG_X86_AX, "rax"},       {PERF_REG_X86_BX, "rbx"},  {PERF_REG_X86_CX, "rcx"},
    {PERF_REG_X86_DX, "rdx"},       {PERF_REG_X86_SI, "rsi"},  {PERF_REG_X86_DI, "rdi"},
    {PERF_REG_X86_BP, "rbp"},       {PERF_REG_X86_SP, "rsp"},  {PERF_REG_X86_IP, "rip"},
    {PERF_REG_X86_FLAGS, "eflags"}, {PERF_REG_X86_R8, "r8"},   {PERF_REG_X86_R9, "r9"},
    {PERF_REG_X86_R10, "r10"},      {PERF_REG_X86_R11, "r11"}, {PERF_REG_X86_R12, "r12"},
    {PERF_REG_X86_R13, "r13"},      {PERF_REG_X86_R14, "r14"}, {PERF_REG_X86_R15, "r15"}};

std::string_view verb_of(perf::BreakOn on) {
  switch (on) {
    case perf::BreakOn::kExecute:
      return "executed";
    case perf::BreakOn::kWrite:
      return "written";
    case perf::BreakOn::kAccess:
      break;
  }
  return "accessed";
}

std::string registers_text(const perf::MarkerHit& hit) {
  std::string text;
  for (std::size_t i = 0; i < hit.registers.size() && i < std::size(kRegisters); ++i)
    text += fmt::format("{}{}={:#x}", i % 6 == 0 ? "\n       " : " ", kRegisters[i].name,
                        hit.registers[i]);
  return text;
}

// An address in the instruction: an access is told with the one behind it.
Address in_instruction(Address told, perf::BreakOn on) {
  return on == perf::BreakOn::kExecute ? told : told - 1;
}

// Where the program was then.
std::string hit_place(Symbolizer& symbols, Address at, perf::BreakOn on) {
  const Address instruction = in_instruction(at, on);
  const Function& function = symbols.function_at(instruction);
  std::string text = fmt::format("{:#x}", at.value);
  if (!function.name.empty()) {
    text += "  " + function.name;
    if (at > function.entry && !function.entry.is_null())
      text += fmt::format("+{:#x}", at - function.entry);
  }
  if (auto line = symbols.line_at(instruction)) {
    std::string_view file = line->file;
    file.remove_prefix(file.rfind('/') + 1);
    text += fmt::format("  {}:{}", file, line->line);
  }
  return printable(text);
}

// The symbols of each process, read when they are first asked for.
class Names {
 public:
  explicit Names(const std::map<std::int32_t, std::string>& maps) : maps_(maps) {}
  Symbolizer& of(std::int32_t pid) {
    auto& symbols = symbols_[pid];
    if (!symbols) {
      auto maps = maps_.find(pid);
      symbols = std::make_unique<ProcessSymbols>(
          parse_maps(maps == maps_.end() ? std::string_view() : std::string_view(maps->second)));
    }
    return *symbols;
  }

 private:
  const std::map<std::int32_t, std::string>& maps_;
  std::map<std::int32_t, std::unique_ptr<ProcessSymbols>> symbols_;
};

}  // namespace

std::uint64_t all_registers() {
  std::uint64_t bits = 0;
  for (const Register& r : kRegisters) bits |= 1ull << r.bit;
  return bits;
}

void HitReport::add(ThreadId thread, const std::map<std::size_t, perf::MarkerLog>& logs) {
  note_maps(thread.pid);
  for (const auto& [watch, log] : logs) {
    counts_[watch] += log.count;
    for (const perf::MarkerHit& hit : log.hits) hits_.push_back({watch, hit});
  }
}

void HitReport::note_maps(std::int32_t pid) {
  auto maps = process_maps(pid);
  if (maps && !maps->empty()) maps_[pid] = *std::move(maps) + seen_[pid];
}

void HitReport::maps_changed(std::int32_t pid) {
  note_maps(pid);
  seen_[pid] = maps_[pid];
}

std::uint64_t HitReport::count() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::vector<HitReport::Hit> HitReport::newest(std::uint64_t limit) const {
  std::vector<Hit> hits = hits_;
  std::stable_sort(hits.begin(), hits.end(),
                   [](const Hit& a, const Hit& b) { return a.hit.time_ns < b.hit.time_ns; });
  if (hits.size() > limit) hits.erase(hits.begin(), hits.end() - static_cast<long>(limit));
  return hits;
}

void HitReport::print(std::FILE* out, const Form& form) const {
  Names names(maps_);
  const std::vector<Hit> hits = newest(form.limit);
  const std::uint64_t begin_ns = hits.empty() ? 0 : hits.front().hit.time_ns;
  for (const Hit& hit : hits)
    fmt::print(out, "{:>14.3f} us  {}  {} {}  at {}{}\n",
               static_cast<double>(hit.hit.time_ns - begin_ns) / 1e3, hit.hit.thread.tid,
               watches_[hit.watch].name, verb_of(watches_[hit.watch].on),
               hit_place(names.of(hit.hit.thread.pid), hit.hit.ip, watches_[hit.watch].on),
               form.registers ? registers_text(hit.hit) : "");
  for (std::size_t i = 0; i < watches_.size(); ++i)
    fmt::print(out, "{}: {} {} time{}\n", watches_[i].name, verb_of(watches_[i].on), counts_[i],
               counts_[i] == 1 ? "" : "s");
  if (hits.size() < count()) fmt::print(out, "the newest {} are shown\n", hits.size());
}

void HitReport::print_json(std::FILE* out, const Form& form, JsonForm json) const {
  Names names(maps_);
  OrderedJson list = OrderedJson::array(), watches = OrderedJson::array();
  for (std::size_t i = 0; i < watches_.size(); ++i)
    watches.push_back({{"what", watches_[i].name},
                       {"address", json_address(watches_[i].address)},
                       {"on", verb_of(watches_[i].on)},
                       {"count", counts_[i]}});
  for (const Hit& hit : newest(form.limit)) {
    Symbolizer& symbols = names.of(hit.hit.thread.pid);
    OrderedJson object = {
        {"what", watches_[hit.watch].name}, {"number", hit.hit.number},
        {"pid", hit.hit.thread.pid},        {"tid", hit.hit.thread.tid},
        {"time_ns", hit.hit.time_ns},       {"address", json_address(hit.hit.ip)}};
    const Address instruction = in_instruction(hit.hit.ip, watches_[hit.watch].on);
    if (const Function& function = symbols.function_at(instruction); !function.name.empty())
      object["function"] = function.name;
    if (auto line = symbols.line_at(instruction)) {
      object["file"] = line->file;
      object["line"] = line->line;
    }
    for (std::size_t i = 0; i < hit.hit.registers.size() && i < std::size(kRegisters); ++i)
      object["registers"][kRegisters[i].name] = json_address({hit.hit.registers[i]});
    list.push_back(std::move(object));
  }
  tailtrace::print_json(out, "tailtrace.watch/1", {{"watches", watches}, {"hits", list}}, json);
}

}  // namespace tailtrace
