#include "decoder/symbols/module_symbols.h"

#include <algorithm>
#include <filesystem>

#include "decoder/symbols/demangle.h"

namespace tailtrace {
namespace {

constexpr char kDebugFolder[] = "/usr/lib/debug";

std::string folder_of(const std::string& path) {
  return path.substr(0, std::min(path.rfind('/'), path.size()));
}

// What both say of it; null: nothing.
Function function_of(const ElfSymbol* symbol, const DebugFunction* debug) {
  Function function;
  if (symbol != nullptr) {
    function.symbol_name = symbol->name;
    function.is_resolver = symbol->is_resolver;
    function.entry = {symbol->value};
  }
  if (debug != nullptr) {
    function.debug_name = debug->linkage_name;
    function.source_file = debug->source_file;
    function.entry = {debug->entry};
  }
  // Static functions have a plain name in the debug information; the symbol's says more.
  bool plain = !function.debug_name.starts_with("_Z") && function.symbol_name.starts_with("_Z");
  function.name =
      demangle(function.debug_name.empty() || plain ? function.symbol_name : function.debug_name);
  return function;
}

}  // namespace

Result<std::unique_ptr<ModuleSymbols>> ModuleSymbols::open(const std::string& path,
                                                           const DebugFetch& fetch) {
  Result<ElfFile> file = ElfFile::open(path);
  if (!file) return fail(std::move(file.error()));
  return of(std::move(*file), fetch);
}

std::unique_ptr<ModuleSymbols> ModuleSymbols::of(ElfFile file, const DebugFetch& fetch) {
  std::unique_ptr<ModuleSymbols> module(new ModuleSymbols(std::move(file)));
  module->info_ = DebugInfo::open(module->file_);
  if (!module->info_ && !module->find_debug_file() && fetch) module->fetch_debug_file(fetch);
  if (module->info_) module->note_missing_file(module->info_->missing_file());
  // Those of the debug file come last: of several at one address they count.
  std::vector<ElfSymbol> symbols = module->file_.symbols();
  std::vector<ElfSymbol> more =
      module->debug_file_ ? module->debug_file_->symbols() : module->file_.packed_symbols();
  symbols.insert(symbols.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  module->table_ = SymbolTable(std::move(symbols));
  return module;
}

// Where distributions and `objcopy --add-gnu-debuglink` put it.
bool ModuleSymbols::find_debug_file() {
  std::string id = file_.build_id();
  if (id.size() > 2 && open_debug_file(std::string(kDebugFolder) + "/.build-id/" + id.substr(0, 2) +
                                       "/" + id.substr(2) + ".debug"))
    return true;
  std::string link = file_.debug_link();
  std::string folder = folder_of(file_.path());
  if (link.empty()) return false;
  for (const std::string& path :
       {folder + "/" + link, folder + "/.debug/" + link, kDebugFolder + folder + "/" + link})
    if (open_debug_file(path)) return true;
  return false;
}

void ModuleSymbols::fetch_debug_file(const DebugFetch& fetch) {
  const std::string id = file_.build_id();
  if (id.empty()) return;
  Result<std::string> path = fetch(id);
  if (path)
    open_debug_file(*path);
  else if (path.error().code != ErrorCode::kGone)
    debug_problem_ = std::move(path.error());
}

// Only the one that belongs to the file: an older one would show wrong lines.
bool ModuleSymbols::open_debug_file(const std::string& path) {
  if (path == file_.path()) return false;
  Result<ElfFile> file = ElfFile::open(path);
  if (!file) note_unreadable(path, std::move(file.error()));
  if (!file || file->build_id() != file_.build_id()) return false;
  debug_problem_.reset();
  debug_file_.emplace(std::move(*file));
  info_ = DebugInfo::open(*debug_file_);
  return true;
}

void ModuleSymbols::note_missing_file(const std::string& path) {
  if (path.empty()) return;
  debug_problem_ = {ErrorCode::kGone, "cannot tell the inlined functions of " + file_.path(),
                    path + " is not there, which has its debug information (-gsplit-dwarf)",
                    "put it where the program is, or was compiled", "all else is known"};
}

// One that is not there is not missed.
void ModuleSymbols::note_unreadable(const std::string& path, Error error) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) return;
  debug_problem_ = std::move(error);
  debug_problem_->now = "of " + file_.path() + " names are its own, and there are no lines";
}

std::string ModuleSymbols::debug_path() const {
  if (!info_) return {};
  return debug_file_ ? debug_file_->path() : file_.path();
}

Function ModuleSymbols::function_at(std::uint64_t address) {
  SymbolTable::Cover symbol = table_.cover(address);
  DebugInfo::Cover debug;
  if (info_) debug = info_->cover(address);
  Function function = function_of(symbol.symbol, debug.function);
  function.begin = {std::max(symbol.begin, debug.begin)};
  function.end = {std::min(symbol.end, debug.end)};
  return function;
}

const std::vector<IndirectFunction>& ModuleSymbols::indirect() {
  if (!indirect_) indirect_ = indirect_functions(file_, table_.symbols());
  return *indirect_;
}

std::optional<std::uint64_t> ModuleSymbols::fde_begin(std::uint64_t address) {
  if (!frames_) frames_ = eh_frames(file_.elf());
  const EhFrame* frame = eh_frame_at(*frames_, address);
  return frame == nullptr ? std::nullopt : std::optional(frame->begin);
}

std::vector<Function> ModuleSymbols::also_named(std::uint64_t entry) {
  return other_names(function_at(entry), entry);
}

std::vector<Function> ModuleSymbols::other_names(const Function& shown, std::uint64_t entry) {
  std::vector<Function> others;
  auto add = [&](const std::string& name) {
    if (name == shown.symbol_name || name == shown.debug_name) return;
    Function& other = others.emplace_back(shown);
    other.entry = {entry};
    other.symbol_name = name;
    other.debug_name.clear();
    other.name = demangle(name);
    other.is_resolver = false;
  };
  for (const ElfSymbol& symbol : table_.at(entry))
    if (!symbol.is_resolver) add(symbol.name);
  for (const IndirectFunction& function :
       std::ranges::equal_range(indirect(), entry, {}, &IndirectFunction::implementation))
    add(function.name);
  return others;
}

std::optional<SourceLine> ModuleSymbols::line_at(std::uint64_t address) {
  return info_ ? info_->line_at(address) : std::nullopt;
}

std::vector<std::uint64_t> ModuleSymbols::line_entries(std::uint64_t address, std::string_view file,
                                                       unsigned line) {
  if (!info_) return {};
  return info_->line_entries(address, file, line);
}

std::vector<InlinedFunction> ModuleSymbols::inlined_at(std::uint64_t address) {
  if (!info_) return {};
  std::vector<InlinedFunction> inlined = info_->inlined_at(address);
  for (InlinedFunction& function : inlined) function.name = demangle(function.name);
  return inlined;
}

std::vector<InlinedPlace> ModuleSymbols::inlined_into(std::uint64_t address) {
  if (!info_) return {};
  std::vector<InlinedPlace> places = info_->inlined_into(address);
  for (InlinedPlace& place : places) place.function.name = demangle(place.function.debug_name);
  return places;
}

bool ModuleSymbols::has_names() const {
  auto is_own = [](const ElfSymbol& symbol) { return !symbol.name.ends_with("@plt"); };
  return info_ || std::ranges::any_of(table_.symbols(), is_own);
}

// The debug information is gone through once, and no unit of it is kept.
bool ModuleSymbols::each_function(const std::function<bool(const Function&)>& show) {
  for (const ElfSymbol& symbol : table_.symbols())
    if (!show(function_of(&symbol, nullptr))) return false;
  for (const IndirectFunction& function : indirect())
    if (!std::ranges::all_of(other_names({}, function.implementation), show)) return false;
  return !info_ || info_->each_function([&](const DebugFunction& found) {
    if (found.entry == 0) return show(function_of(nullptr, &found));
    const Function function = function_of(table_.cover(found.entry).symbol, &found);
    return show(function) && std::ranges::all_of(other_names(function, found.entry), show);
  });
}

bool ModuleSymbols::each_line(bool of_statements,
                              const std::function<void(const SourceLine&)>& show) {
  return !info_ || info_->each_line(of_statements, show);
}

const std::vector<SourceLine>* ModuleSymbols::lines_of_unit(std::uint64_t address) {
  return info_ ? info_->lines_of_unit(address) : nullptr;
}

std::vector<SourceLine> ModuleSymbols::lines_beginning_at(std::uint64_t address) {
  return info_ ? info_->lines_beginning_at(address) : std::vector<SourceLine>();
}

}  // namespace tailtrace
