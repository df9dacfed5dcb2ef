#include "decoder/symbols/process_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "decoder/code/vdso.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/demangle.h"
#include "decoder/symbols/generated_files.h"

namespace tailtrace {
namespace {

// Instead of which one was made in a place.
constexpr std::size_t kUnknownEarlier = ~std::size_t{0};
constexpr std::size_t kMaxInEpochs = std::size_t{1} << 20;
// Of a function's code so much is looked at, on either side of what is asked for.
constexpr std::uint64_t kCompared_bytes = 2048;

bool has_names(const Mapping& mapping) { return mapping.has_file() || mapping.path == kVdsoName; }

// What was there of a function's code in an epoch.
GeneratedFunctions::Likeness compare_around(const CodeImage& image, Epoch when, Address address,
                                            Address begin, ByteSpan code) {
  GeneratedFunctions::Likeness like;
  const std::uint64_t middle = address - begin;
  const std::uint64_t first = middle - std::min(middle, kCompared_bytes);
  const std::uint64_t end = std::min<std::uint64_t>(code.size(), middle + kCompared_bytes);
  for (std::uint64_t at = first; at < end; ++at) {
    const ByteSpan known = image.at(begin + at, 1, when);
    if (known.empty()) continue;
    ++like.known_bytes;
    like.same_bytes += known.front() == code[at];
  }
  return like;
}

}  // namespace

ProcessSymbols::ProcessSymbols(std::vector<Mapping> mappings, std::string perf_map,
                               std::function<void(const Error&)> tell)
    : mappings_(std::move(mappings)), perf_map_(std::move(perf_map)), tell_(std::move(tell)) {}

const Function& ProcessSymbols::function_at(Address address) {
  const Former* former = former_in(address, kNewestEpoch);
  return former != nullptr ? former_function(*former, address) : newest_function(address);
}

// Of what is mapped, or was generated.
const Function& ProcessSymbols::newest_function(Address address) {
  auto covers = [&](const Function& f) { return f.begin <= address && address < f.end; };
  if (last_ != nullptr && covers(*last_)) return *last_;
  auto after = functions_.upper_bound(address);
  if (after != functions_.begin() && covers(std::prev(after)->second)) {
    last_ = &std::prev(after)->second;
    return *last_;
  }
  Function function = make_function(address);
  last_ = &functions_.insert_or_assign(function.begin, std::move(function)).first->second;
  return *last_;
}

Function ProcessSymbols::make_function(Address address) {
  Place place = place_of(address);
  if (place.module == nullptr) return function_of(place, generated().cover(address));
  return function_in_module(place, address);
}

Function ProcessSymbols::function_in_module(const Place& place, Address address) {
  Function function = place.module->function_at(address.value - place.bias);
  // Stretches may begin or end beyond what is mapped, or wrap around.
  auto loaded = [&](Address at) { return Address{at.value + place.bias}; };
  Address begin = loaded(function.begin), end = loaded(function.end);
  function.begin = begin > address ? place.begin : std::max(begin, place.begin);
  function.end = end <= address ? place.end : std::min(end, place.end);
  if (function.known()) function.entry = loaded(function.entry);
  function.module = place.mapping->path;
  return function;
}

Function ProcessSymbols::function_of(const Place& place, const GeneratedFunctions::Cover& cover) {
  Function function;
  function.begin = std::max(place.begin, cover.begin);
  function.end = std::min(place.end, cover.end);
  if (place.mapping != nullptr) function.module = place.mapping->path;
  if (cover.name == nullptr) return function;
  function.entry = cover.entry;
  function.symbol_name = *cover.name;
  function.name = demangle(*cover.name);
  function.module = kGeneratedModule;
  return function;
}

const Function& ProcessSymbols::function_in(Address address, Epoch when) {
  if (const Former* former = former_in(address, when)) return former_function(*former, address);
  const Function& newest = newest_function(address);
  const bool may_differ = code_ && generated_ && generated_->any_replaced();
  if (!may_differ || newest.module != kGeneratedModule) return newest;
  if (in_epochs_.size() >= kMaxInEpochs) in_epochs_.clear();
  auto [known, added] = in_epochs_.try_emplace({newest.begin, when});
  if (added) known->second = &find_replaced(address, when);
  return *known->second;
}

const Function& ProcessSymbols::find_replaced(Address address, Epoch when) {
  const GeneratedFunctions::Cover cover =
      generated().cover(address, [&](Address begin, ByteSpan code) {
        return compare_around(*code_, when, address, begin, code);
      });
  const bool is_other =
      cover.is_replaced && !cover.has_code && had_other_code(cover, address, when);
  const auto earlier = is_other ? generated().only_earlier(address) : std::nullopt;
  const std::size_t which = earlier ? earlier->made : is_other ? kUnknownEarlier : cover.made;
  auto [known, added] = replaced_.try_emplace({cover.begin, which});
  if (added)
    known->second = is_other && !earlier ? replaced_by(place_of(address), cover)
                                         : function_of(place_of(address), earlier.value_or(cover));
  return known->second;
}

// Where no code was told: whether what was there then is something else than what was there last.
bool ProcessSymbols::had_other_code(const GeneratedFunctions::Cover& cover, Address address,
                                    Epoch when) const {
  const Address first = std::max(cover.begin, address - std::min(address.value, kCompared_bytes));
  const Address end = std::min(cover.end, address + kCompared_bytes);
  std::uint64_t known_bytes = 0, same_bytes = 0;
  for (Address at = first; at < end; ++at.value) {
    const ByteSpan then = code_->at(at, 1, when), last = code_->at(at, 1, kNewestEpoch);
    if (then.empty() || last.empty()) continue;
    ++known_bytes;
    same_bytes += then.front() == last.front();
  }
  return same_bytes * 2 < known_bytes;
}

// One of several that were there before, nobody knows which.
Function ProcessSymbols::replaced_by(const Place& place, const GeneratedFunctions::Cover& cover) {
  Function function = function_of(place, cover);
  function.name = fmt::format("[replaced by {}]", function.name);
  function.symbol_name.clear();
  function.entry = {};
  return function;
}

const GeneratedFunctions& ProcessSymbols::generated() {
  if (generated_) return *generated_;
  std::vector<Error> problems;
  generated_ = read_generated_functions(perf_map_, jit_dumps_of(mappings_), problems);
  for (Error& problem : problems) add_problem(std::move(problem));
  return *generated_;
}

void ProcessSymbols::add_problem(Error problem, const std::string& module) {
  if (!module.empty()) {
    problem.what = "cannot name the functions of " + module;
    problem.now = "their instructions are shown without names";
  }
  if (tell_) tell_(problem);
  problems_.push_back(std::move(problem));
}

ProcessSymbols::Place ProcessSymbols::place_of(Address address) {
  // Whole histories are asked for, an instruction after the other.
  if (last_place_.begin <= address && address < last_place_.end) return last_place_;
  Place place;
  place.end = {~0ull};
  auto after = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                [](Address a, const Mapping& m) { return a < m.begin; });
  if (after != mappings_.end()) place.end = after->begin;
  if (after != mappings_.begin()) place.begin = std::prev(after)->end;
  if (after == mappings_.begin() || address >= std::prev(after)->end) {
    clip_to_former(address, place);
    return place;
  }
  take_module(*std::prev(after), mappings_, place);
  return last_place_ = place;
}

// What an address is of that is mapped.
void ProcessSymbols::take_module(const Mapping& mapping, std::span<const Mapping> nearby,
                                 Place& place) {
  place.begin = mapping.begin;
  place.end = mapping.end;
  place.mapping = &mapping;
  if (!has_names(mapping)) {
    note_deleted(mapping);
    return;
  }
  ModuleSymbols* module = module_of(mapping);
  if (module == nullptr) return;
  std::optional<std::uint64_t> bias = load_bias(module->segments(), nearby, mapping);
  if (!bias) return;
  place.module = module;
  place.bias = *bias;
}

// Memory that has a file's name only, as what programs generate code in, is none of these.
void ProcessSymbols::note_deleted(const Mapping& mapping) {
  const std::string path(deleted_path(mapping));
  if (path.empty()) return;
  for (std::string_view memory : {"/memfd:", "/dev/", "/SYSV", "/anon_hugepage"})
    if (path.starts_with(memory)) return;
  if (!modules_.try_emplace(mapping.path).second) return;
  add_problem({ErrorCode::kGone, "", "it was deleted or replaced after it had been mapped",
               "leave files where they are until the recording is written, or record as root: the "
               "kernel gives what was deleted to nobody else, but for programs' own files",
               ""},
              path);
}

// Of the vDSO as much as is known of its begin, where its names are.
Result<std::unique_ptr<ModuleSymbols>> ProcessSymbols::open_module(const Mapping& mapping) const {
  if (mapping.has_file()) return ModuleSymbols::open(mapping.file(), fetch_);
  Bytes image(std::min<std::uint64_t>(mapping.end - mapping.begin, kMaxVdso_bytes));
  if (code_) image.resize(code_->read(mapping.begin, image, kNewestEpoch));
  Result<ElfFile> file = ElfFile::of_image(mapping.path, std::move(image));
  if (!file) return std::unique_ptr<ModuleSymbols>();
  return ModuleSymbols::of(std::move(*file), fetch_);
}

ModuleSymbols* ProcessSymbols::module_of(const Mapping& mapping) {
  auto known = modules_.find(mapping.file());
  if (known != modules_.end()) return known->second.get();
  Result<std::unique_ptr<ModuleSymbols>> module = open_module(mapping);
  if (!module) add_problem(std::move(module.error()), mapping.path);
  if (module && *module && (*module)->debug_problem()) add_problem(*(*module)->debug_problem());
  auto& kept = modules_[mapping.file()];
  if (module) kept = std::move(*module);
  return kept.get();
}

std::optional<Address> ProcessSymbols::fde_begin(Address address, Epoch when) {
  const Place at = place_in(address, when);
  if (at.module == nullptr) return std::nullopt;
  const auto begin = at.module->fde_begin(address.value - at.bias);
  if (!begin) return std::nullopt;
  return Address{*begin + at.bias};
}

std::vector<Function> ProcessSymbols::also_named(Address entry, Epoch when) {
  const Place at = place_in(entry, when);
  if (at.module == nullptr) return {};
  std::vector<Function> others = at.module->also_named(entry.value - at.bias);
  for (Function& other : others) {
    other.module = at.mapping->path;
    other.entry = entry;
  }
  return others;
}

std::vector<ProcessSymbols::Module> ProcessSymbols::modules() {
  std::vector<Module> found;
  std::set<std::string_view> seen;
  auto add = [&](const Mapping& mapping) {
    const bool has_code = code_ ? code_->ever_knew(mapping.begin, mapping.end) : mapping.executable;
    if (has_code && has_names(mapping) && seen.insert(mapping.file()).second)
      found.push_back({mapping.path, module_of(mapping)});
  };
  std::ranges::for_each(mappings_, add);
  for (const Former& former : former_) std::ranges::for_each(former.module.mappings, add);
  return found;
}

bool ProcessSymbols::has_anything(Address address) const {
  return std::ranges::any_of(mappings_,
                             [address](const Mapping& mapping) {
                               return mapping.begin <= address && address < mapping.end;
                             }) ||
         std::ranges::any_of(
             former_,
             [address](const Former& former) { return former.module.find(address) != nullptr; }) ||
         (code_ && code_->ever_knew(address, address + 1));
}

bool ProcessSymbols::each_function(const std::function<bool(const Function&)>& show) {
  bool all = true, wanted = true;
  for (const Module& module : modules()) {
    if (module.symbols == nullptr) continue;
    all = module.symbols->each_function([&](Function function) {
      function.module = module.path;
      return wanted = show(function);
    }) && all;
    if (!wanted) return false;
  }
  for (const std::string& name : generated().names()) {
    Function function;
    function.name = demangle(name);
    function.symbol_name = name;
    function.module = kGeneratedModule;
    if (!show(function)) return false;
  }
  return all;
}

bool ProcessSymbols::each_line(bool of_statements,
                               const std::function<void(const SourceLine&)>& show) {
  bool all = true;
  for (const Module& module : modules())
    if (module.symbols != nullptr) all = module.symbols->each_line(of_statements, show) && all;
  return all;
}

std::optional<SourceLine> ProcessSymbols::line_at(Address address, Epoch when) {
  const Place place = place_in(address, when);
  return place.module == nullptr ? std::nullopt : place.module->line_at(address.value - place.bias);
}

std::vector<Address> ProcessSymbols::line_entries(Address address, std::string_view file,
                                                  unsigned line, Epoch when) {
  const Place at = place_in(address, when);
  std::vector<Address> entries;
  if (at.module == nullptr) return entries;
  for (std::uint64_t entry : at.module->line_entries(address.value - at.bias, file, line))
    entries.push_back({entry + at.bias});
  return entries;
}

std::vector<InlinedFunction> ProcessSymbols::inlined_at(Address address, Epoch when) {
  const Place place = place_in(address, when);
  if (place.module == nullptr) return {};
  return place.module->inlined_at(address.value - place.bias);
}

std::vector<InlinedPlace> ProcessSymbols::inlined_into(Address address, Epoch when) {
  const Place at = place_in(address, when);
  if (at.module == nullptr) return {};
  std::vector<InlinedPlace> places = at.module->inlined_into(address.value - at.bias);
  for (InlinedPlace& place : places) {
    place.function.module = at.mapping->path;
    place.function.entry.value += at.bias;
    for (auto& [begin, end] : place.ranges) {
      begin.value += at.bias;
      end.value += at.bias;
    }
  }
  return places;
}

// Where the file cannot be read, as if its addresses were its offsets, which they mostly are.
std::optional<std::uint64_t> ProcessSymbols::address_in_file(Address address, Epoch when) {
  const Place place = place_in(address, when);
  if (place.module != nullptr) return address.value - place.bias;
  if (place.mapping == nullptr || !place.mapping->has_file()) return std::nullopt;
  return place.mapping->file_offset_bytes + (address - place.mapping->begin);
}

ByteSpan ProcessSymbols::code_in_file(Address address, Epoch when) {
  const Place place = place_in(address, when);
  if (place.module == nullptr) return {};
  return place.module->file().code_at(address.value - place.bias);
}

const std::vector<SourceLine>* ProcessSymbols::lines_of_unit(Address address, Epoch when) {
  const Place place = place_in(address, when);
  return place.module == nullptr ? nullptr
                                 : place.module->lines_of_unit(address.value - place.bias);
}

std::vector<SourceLine> ProcessSymbols::lines_beginning_at(Address address, Epoch when) {
  const Place place = place_in(address, when);
  if (place.module == nullptr) return {};
  return place.module->lines_beginning_at(address.value - place.bias);
}

}  // namespace tailtrace
