#include "decoder/bundle/bundle_about.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "decoder/base/bytes.h"
#include "decoder/base/json_text.h"
#include "decoder/base/own_file.h"
#include "decoder/bundle/bundle_about_json.h"
#include "decoder/bundle/bundle_format.h"
#include "decoder/code/maps_line.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/jit_dump.h"

namespace tailtrace {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

std::string text_of(const Json& object, const char* name) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return {};
  return found->get<std::string>().substr(0, kBundleMaxText_bytes);
}

std::uint64_t number_of(const Json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// A list of objects, cut to its limit.
std::vector<Json> objects_of(const Json& object, const char* name, std::size_t limit) {
  std::vector<Json> objects;
  auto found = object.find(name);
  if (found == object.end() || !found->is_array()) return objects;
  for (const Json& item : *found)
    if (item.is_object() && objects.size() < limit) objects.push_back(item);
  return objects;
}

// A file of the bundle's own: a bundle may come from anywhere, and must not lead anywhere.
std::string own_file(std::string name) { return stays_inside(name) ? name : std::string(); }

std::uint64_t hex_of(const Json& value) {
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  return text.starts_with("0x") ? parse_hex(std::string_view(text).substr(2)).value_or(0) : 0;
}

// Where a mapped file is another one than was executed, in place of its path's beginning.
const std::string kOtherBuild = "another build: ";

// By the paths as a bundle has them.
using Moves = std::unordered_map<std::string, std::string>;

Moves moves_to_nowhere(const std::vector<BundleModule>& modules) {
  Moves moves;
  for (const BundleModule& module : modules)
    if (!module.other_build_id.empty())
      moves.emplace(name_in_json(module.path), kOtherBuild + module.path);
  return moves;
}

std::string moved(const Moves& moves, std::string_view path) {
  auto move = moves.find(name_in_json(path));
  return move == moves.end() ? std::string(path) : move->second;
}

// The text of /proc/PID/maps with other paths of files.
template <class Move>
std::string moved_maps(std::string_view maps, Move move) {
  std::string moved;
  while (!maps.empty()) {
    const std::string_view line = cut_line(maps), path = path_in_maps_line(line);
    moved.append(line.substr(0, line.size() - path.size()));
    if (!path.empty()) moved.append(move(path));
    moved.push_back('\n');
  }
  return moved;
}

}  // namespace

void add_about(const BundleAbout& about, OrderedJson& bundle) {
  if (!about.cause.empty()) {
    OrderedJson& recorded = bundle["recorded"];
    recorded = {{"cause", about.cause}};
    if (about.signal != 0) recorded["signal"] = about.signal;
    if (about.thread.tid != 0) {
      recorded["pid"] = about.thread.pid;
      recorded["tid"] = about.thread.tid;
    }
    if (!about.command.empty()) recorded["command"] = about.command;
    for (const BundleClock& clock : about.clocks)
      recorded["clocks"].push_back({{"tsc", clock.tsc},
                                    {"monotonic_ns", clock.monotonic_ns},
                                    {"realtime_ns", clock.realtime_ns}});
  }
  for (const BundleModule& module : about.modules) {
    OrderedJson object = {{"path", module.path}};
    if (!module.build_id.empty()) object["build_id"] = module.build_id;
    if (!module.copy.empty()) object["file"] = module.copy;
    bundle["modules"].push_back(std::move(object));
  }
  if (!about.core.empty()) bundle["core"] = about.core;
}

void add_thread_state(const BundleThreadState& state, OrderedJson& thread) {
  if (!state.name.empty()) thread["name"] = state.name;
  for (const auto& [name, value] : state.registers)
    thread["registers"][name] = fmt::format("{:#x}", value);
  for (Address frame : state.stack) thread["stack"].push_back(fmt::format("{:#x}", frame.value));
}

BundleAbout read_about(const Json& bundle) {
  BundleAbout about;
  if (auto recorded = bundle.find("recorded"); recorded != bundle.end() && recorded->is_object()) {
    about.cause = text_of(*recorded, "cause");
    about.signal = static_cast<int>(number_of(*recorded, "signal") & 0x7f);
    about.thread = {static_cast<std::int32_t>(number_of(*recorded, "pid") & 0x7fffffff),
                    static_cast<std::int32_t>(number_of(*recorded, "tid") & 0x7fffffff)};
    about.command = text_of(*recorded, "command");
    for (const Json& clock : objects_of(*recorded, "clocks", kBundleMaxClocks))
      about.clocks.push_back({number_of(clock, "tsc"), number_of(clock, "monotonic_ns"),
                              number_of(clock, "realtime_ns")});
  }
  for (const Json& module : objects_of(bundle, "modules", kBundleMaxModules))
    about.modules.push_back(
        {text_of(module, "path"), text_of(module, "build_id"), own_file(text_of(module, "file"))});
  about.core = own_file(text_of(bundle, "core"));
  return about;
}

BundleThreadState read_thread_state(const Json& thread) {
  BundleThreadState state;
  state.name = text_of(thread, "name");
  if (auto stack = thread.find("stack"); stack != thread.end() && stack->is_array())
    for (const Json& frame : *stack)
      if (state.stack.size() < kBundleMaxFrames) state.stack.push_back({hex_of(frame)});
  auto registers = thread.find("registers");
  if (registers == thread.end() || !registers->is_object()) return state;
  for (const auto& [name, value] : registers->items())
    if (state.registers.size() < kBundleMaxRegisters)
      state.registers.emplace_back(name.substr(0, kBundleMaxText_bytes), hex_of(value));
  return state;
}

void compare_build_ids(BundleAbout& about) {
  for (BundleModule& module : about.modules) {
    if (module.build_id.empty() || !module.copy.empty() || !module.path.starts_with('/')) continue;
    Result<ElfFile> file = ElfFile::open(module.path);
    if (!file) continue;
    std::string here = file->build_id();
    if (here.empty()) here = "none";
    if (here != module.build_id) module.other_build_id = std::move(here);
  }
}

std::vector<Error> other_modules(const BundleAbout& about) {
  constexpr std::size_t kMaxNamed = 5;
  std::vector<std::string> named;
  std::size_t others = 0;
  for (const BundleModule& module : about.modules) {
    if (module.other_build_id.empty()) continue;
    if (others++ < kMaxNamed)
      named.push_back(fmt::format("{} has the build id {} here, and had {}", module.path,
                                  module.other_build_id, module.build_id));
  }
  if (others == 0) return {};
  std::string why = fmt::format("{}", fmt::join(named, "; "));
  if (others > kMaxNamed) why += fmt::format("; and {} more", others - kMaxNamed);
  return {
      {ErrorCode::kBadInput,
       fmt::format("cannot name the functions of {} file(s): not those that were executed", others),
       why, "put the files that were executed there, or record with --on-crash and --modules=copy",
       "instructions and gaps are right: their code was recorded"}};
}

std::string maps_with_other_builds(const std::string& maps,
                                   const std::vector<BundleModule>& modules) {
  const Moves moves = moves_to_nowhere(modules);
  if (moves.empty()) return maps;
  return moved_maps(maps, [&](std::string_view path) { return moved(moves, path); });
}

std::string copy_of(const std::vector<BundleModule>& modules, const std::string& path,
                    const std::string& folder) {
  for (const BundleModule& module : modules)
    if (module.path == path && !module.copy.empty()) return folder + "/" + module.copy;
  return {};
}

std::string maps_to_copies(const std::string& maps, const std::vector<BundleModule>& modules,
                           const std::string& folder) {
  Moves moves = moves_to_nowhere(modules);
  for (const BundleModule& module : modules)
    if (!module.copy.empty()) moves.emplace(name_in_json(module.path), folder + "/" + module.copy);
  if (moves.empty() && maps.find(kJitDumpBegin) == maps.npos) return maps;
  return moved_maps(maps, [&](std::string_view path) {
    if (auto move = moves.find(name_in_json(path)); move != moves.end()) return move->second;
    return (is_jit_dump_name(path) ? "not in the bundle: " : "") + std::string(path);
  });
}

std::string maps_from_copies(const std::string& maps, const std::vector<BundleModule>& modules,
                             const std::string& folder) {
  Moves moves;
  for (const BundleModule& module : modules)
    if (module.copy.starts_with(kModulesFolder))
      moves.emplace(name_in_json(folder + "/" + module.copy), module.path);
  std::string back = moved_maps(maps, [&](std::string_view path) { return moved(moves, path); });
  for (std::size_t at = 0; (at = back.find(kOtherBuild, at)) != back.npos;)
    back.erase(at, kOtherBuild.size());
  return back;
}

}  // namespace tailtrace
