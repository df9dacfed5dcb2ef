#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "decoder/base/durable.h"
#include "decoder/base/file.h"
#include "decoder/base/json_text.h"
#include "decoder/base/place.h"
#include "decoder/bundle/bundle.h"
#include "decoder/bundle/bundle_about_json.h"
#include "decoder/bundle/bundle_format.h"
#include "decoder/bundle/lldb_bundle.h"
#include "decoder/code/maps_line.h"
#include "decoder/history/symbolizer.h"
#include "decoder/symbols/deleted_files.h"
#include "decoder/symbols/elf_file.h"
#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/jit_dump.h"
#include "decoder/symbols/process_symbols.h"

namespace tailtrace {
namespace {

// A new file of the user's own.
Result<void> write_file(const std::string& path, ByteSpan bytes) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail(system_error("cannot make " + path));
  return write_all(fd.get(), bytes, path);
}

// That something has a place there is on the disk when this returns.
Result<void> sync_place_of(const std::string& path) {
  const std::string parent = folder_holding(path);
  UniqueFd fd(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(system_error("cannot open " + parent));
  return sync_file(fd.get(), parent);
}

Result<void> make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return fail(system_error("cannot make " + path));
}

Result<void> copy_file(const std::string& from, const std::string& to) {
  constexpr std::size_t kPiece_bytes = 1 << 20;
  UniqueFd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!in) return fail(system_error("cannot read " + from));
  UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out) return fail(system_error("cannot make " + to));
  Bytes piece(kPiece_bytes);
  for (;;) {
    ssize_t n = ::read(in.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error("cannot read " + from));
    if (n == 0) return {};
    const ByteSpan read(piece.data(), static_cast<std::size_t>(n));
    if (auto ok = write_all(out.get(), read, to); !ok) return ok;
  }
}

std::string cannot_save_at(const std::string& path) { return "cannot save a bundle at " + path; }

Error is_taken(const std::string& path) {
  return {ErrorCode::kUsage,
          cannot_save_at(path),
          "something is there already",
          "choose another name, or remove it",
          {}};
}

// What is there is nobody's to write over, and no empty folder either.
Result<void> move_to_place(const std::string& from, const std::string& to) {
  if (move_to_free_place(from, to)) return {};
  if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return fail(is_taken(to));
  return fail(system_error("cannot put the bundle at " + to));
}

nlohmann::ordered_json threads_json(const std::vector<BundleThread>& threads,
                                    const BundleAbout& about) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const BundleThread& thread : threads) {
    nlohmann::ordered_json object = {{"file", list.size() + 1},
                                     {"pid", thread.thread.pid},
                                     {"tid", thread.thread.tid},
                                     {"engine", thread.engine},
                                     {"records", thread.records}};
    if (auto state = about.threads.find(thread.thread); state != about.threads.end())
      add_thread_state(state->second, object);
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace

Result<BundleWriter> BundleWriter::create(const std::string& path) {
  struct stat info;
  if (path.empty()) return fail(ErrorCode::kUsage, "cannot save a bundle", "it has no name");
  std::string place = path;
  while (place.size() > 1 && place.back() == '/') place.pop_back();
  if (::lstat(place.c_str(), &info) == 0) return fail(is_taken(place));
  auto folder =
      OwnFolder::make(folder_holding(place), fmt::format("{}.unfinished", base_name(place)));
  if (!folder) {
    folder.error().what = cannot_save_at(place);
    folder.error().fix = "name a place in a folder that is there and can be written to";
    return fail(std::move(folder.error()));
  }
  BundleWriter writer(std::move(place), std::move(*folder));
  writer.spare_ = UniqueFd(::open(writer.folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!writer.spare_) return fail(system_error("cannot open " + writer.folder()));
  return writer;
}

// A copy stands for the file at `path`; what was tried once is not tried again.
Result<void> BundleWriter::copy_generated(const std::string& path, const std::string& from) {
  for (const BundleModule& known : generated_)
    if (known.path == path) return {};
  generated_.push_back({path, {}, {}});
  Result<Bytes> bytes = read_generated_file(from);
  if (!bytes) {
    remarks_.push_back(std::move(bytes.error()));
    return {};
  }
  std::string place = "generated";
  for (const std::string& folder : {place, fmt::format("{}/{}", place, generated_.size())}) {
    if (auto ok = make_folder(this->folder() + "/" + folder); !ok) return ok;
    place = folder;
  }
  place.append("/").append(base_name(path));
  if (auto ok = write_file(folder() + "/" + place, *bytes); !ok) return ok;
  generated_.back().copy = std::move(place);
  return {};
}

Result<void> BundleWriter::add_module(BundleModule module, const std::string& from) {
  auto known = std::ranges::find_if(modules_, [&](const BundleModule& other) {
    return other.path == module.path && other.build_id == module.build_id;
  });
  const bool is_known = known != modules_.end();
  if (is_known && (from.empty() || !known->copy.empty())) return {};
  module.copy.clear();
  if (!from.empty()) {
    const std::string place = fmt::format("{}/{}", kModulesFolder, modules_.size() + 1);
    for (const std::string& folder : {std::string(kModulesFolder), place})
      if (auto ok = make_folder(this->folder() + "/" + folder); !ok) return ok;
    std::string_view name = base_name(module.path);
    if (name.ends_with(kDeletedWord)) name.remove_suffix(kDeletedWord.size());
    module.copy.append(place).append("/").append(name_in_json(name));
    if (auto ok = copy_file(from, folder() + "/" + module.copy); !ok) return ok;
  }
  if (is_known)
    *known = std::move(module);
  else
    modules_.push_back(std::move(module));
  return {};
}

// Modules go by their paths, and files that were deleted may share one: all but the first are given
// one of their own.
std::string BundleWriter::name_of_deleted(std::string_view id, std::string_view path) {
  std::vector<std::string>& ids = deleted_[std::string(path)];
  const auto found = std::ranges::find(ids, id);
  const auto number = found - ids.begin() + 1;
  if (found == ids.end()) ids.emplace_back(id);
  if (number == 1) return std::string(path);
  path.remove_suffix(kDeletedWord.size());
  return fmt::format("{} #{}{}", path, number, kDeletedWord);
}

std::string BundleWriter::tell_deleted_apart(std::string_view maps) {
  std::string text;
  if (maps.find(kDeletedWord) == maps.npos) return text.append(maps);
  while (!maps.empty()) {
    const std::string_view line = cut_line(maps), path = path_in_maps_line(line);
    std::string_view before = line.substr(0, line.size() - path.size());
    text += before;
    before.remove_suffix(before.size() - before.find_last_not_of(' ') - 1);
    before.remove_prefix(before.rfind(' ', before.rfind(' ') - 1) + 1);
    text += path.ends_with(kDeletedWord) ? name_of_deleted(before, path) : std::string(path);
    text += '\n';
  }
  return text;
}

Result<void> BundleWriter::keep_deleted(std::int32_t pid, std::string_view maps,
                                        const CodeImage* code) {
  // Under qemu no mapping says that it is executable.
  const auto is_wanted = [&](const MapsLine& line) {
    const bool has_code = line.executable() || (code && code->ever_knew({line.begin}, {line.end}));
    return has_code && tried_.insert(fmt::format("{} {} {}", pid, line.file_id, line.name)).second;
  };
  for (const DeletedFile& file : deleted_files(pid, maps, is_wanted)) {
    auto elf = ElfFile::open(file.at);
    if (!elf) continue;  // the process has just ended
    const std::string opened = fmt::format("/proc/self/fd/{}", elf->fd());
    BundleModule module{name_of_deleted(file.id, file.path), elf->build_id(), {}};
    if (auto ok = add_module(std::move(module), opened); !ok) return ok;
  }
  return {};
}

Result<void> BundleWriter::carry_over(const BundleThread& thread) {
  if (!thread.about) return {};
  const BundleAbout& told = *thread.about;
  for (const BundleModule& module : told.modules) {
    // Copies of what programs generated are made with the histories.
    if (!module.copy.empty() && !module.copy.starts_with(kModulesFolder)) continue;
    const std::string from = module.copy.empty() ? "" : thread.folder + "/" + module.copy;
    if (auto ok = add_module(module, from); !ok) return ok;
  }
  BundleAbout about = told;
  about.modules.clear();
  about.threads = std::move(about_.threads);
  if (auto state = told.threads.find(thread.thread); state != told.threads.end())
    about.threads[thread.thread] = state->second;
  about.core = about_.core;
  if (about.core.empty() && !told.core.empty()) {
    about.core = "core";
    if (auto ok = copy_file(thread.folder + "/" + told.core, folder() + "/" + about.core); !ok)
      return ok;
  }
  about_ = std::move(about);
  return {};
}

Result<void> BundleWriter::add_generated(std::string_view maps, const std::string& path,
                                         const std::string& perf_map) {
  if (!perf_map.empty())
    if (auto ok = copy_generated(path, perf_map); !ok) return ok;
  if (maps.find(kJitDumpBegin) == maps.npos) return {};
  for (const std::string& dump : jit_dumps_of(parse_maps(maps)))
    if (auto ok = copy_generated(dump, dump); !ok) return ok;
  return {};
}

Result<void> BundleWriter::add(const ThreadSnapshot& snapshot, std::string_view maps,
                               const std::string& perf_map) {
  if (auto ok = keep_deleted(snapshot.thread.pid, maps, snapshot.code.get()); !ok) return ok;
  const std::string own_maps = tell_deleted_apart(maps);
  std::string former_maps = tell_deleted_apart(snapshot.former_maps);
  if (former_maps == snapshot.former_maps) return add_told_apart(snapshot, own_maps, perf_map);
  ThreadSnapshot other = snapshot;
  other.former_maps = std::move(former_maps);
  return add_told_apart(other, own_maps, perf_map);
}

Result<void> BundleWriter::add_told_apart(const ThreadSnapshot& snapshot, std::string_view maps,
                                          const std::string& perf_map) {
  std::uint64_t file = threads_.size() + 1;
  if (file > kBundleMaxThreads)
    return fail(ErrorCode::kUsage, "cannot save another thread in " + path_,
                "a bundle holds " + std::to_string(kBundleMaxThreads) + " at most");
  std::span<const BranchRecord> records = snapshot.records;
  ByteSpan bytes(reinterpret_cast<const std::uint8_t*>(records.data()), records.size_bytes());
  if (auto ok = write_file(bundle_records_path(folder(), file), bytes); !ok) return ok;
  if (auto ok = save_snapshot_frame(snapshot, maps, bundle_stream_path(folder(), file)); !ok)
    return ok;
  if (auto ok = add_generated(maps, perf_map_path(snapshot.thread.pid), perf_map); !ok) return ok;
  threads_.push_back({snapshot.thread, snapshot.engine.substr(0, kBundleMaxEngine_bytes),
                      records.size(), bundle_records_path(path_, file),
                      bundle_stream_path(path_, file)});
  const std::string trace = bundle_trace_name(file);
  const Bytes pt = add_for_lldb(snapshot, maps, trace);
  return pt.empty() ? Result<void>() : write_file(folder() + "/" + trace, pt);
}

// LLDB takes the file that is at the path, so that it is told of none that is another one; of what
// was deleted there are copies.
Bytes BundleWriter::add_for_lldb(const ThreadSnapshot& snapshot, std::string_view maps,
                                 const std::string& trace) {
  ProcessSymbols symbols(parse_maps(maps_with_other_builds(std::string(maps), modules_)));
  ThreadFrame frame = snapshot;
  frame.former_maps = maps_with_other_builds(frame.former_maps, modules_);
  symbols.know_history(frame);
  auto mappings_in = [&](Epoch when) {
    std::vector<Mapping> mappings = symbols.mappings_in(when);
    for (Mapping& mapping : mappings) {
      const std::string deleted(deleted_path(mapping));
      if (deleted.empty()) continue;
      mapping.readable_at = copy_of(modules_, deleted, folder());
      if (!mapping.readable_at.empty())
        mapping.path = deleted.substr(0, deleted.size() - kDeletedWord.size());
    }
    return mappings;
  };
  return lldb_.add(snapshot, mappings_in, trace);
}

std::vector<Error> BundleWriter::remarks() const {
  std::vector<Error> remarks = remarks_;
  for (Error& remark : lldb_.remarks()) remarks.push_back(std::move(remark));
  return remarks;
}

std::string BundleWriter::told() const {
  std::string told;
  for (const Error& remark : remarks()) told += remark.to_string() + "\n";
  return told + fmt::format("Saved {} thread{} in {}.", threads_.size(),
                            threads_.size() == 1 ? "" : "s", path_);
}

Result<void> BundleWriter::finish() {
  if (threads_.empty())
    return fail(ErrorCode::kUsage, cannot_save_at(path_), "no thread is recorded", "record first");
  if (auto ok = write_description(); !ok) return ok;
  // Whole or not there, whatever happens: the place must not come to stand for half of it.
  if (auto ok = sync_folder(spare_.get(), folder()); !ok) return ok;
  if (auto ok = move_to_place(folder(), path_); !ok) return ok;
  auto synced = sync_place_of(path_);
  // It is taken away again with what was not finished.
  if (synced || std::rename(path_.c_str(), folder().c_str()) != 0) folder_.keep();
  return synced;
}

Result<void> BundleWriter::write_description() {
  nlohmann::ordered_json json = {{"schema", kBundleSchema}};
  for (BundleModule& module : modules_) about_.modules.push_back(std::move(module));
  for (BundleModule& copied : generated_)
    if (!copied.copy.empty()) about_.modules.push_back(std::move(copied));
  add_about(about_, json);
  json["threads"] = threads_json(threads_, about_);
  if (auto ok = write_file(folder() + "/" + kLldbBundleName, as_bytes(lldb_.description(folder())));
      !ok)
    return ok;
  auto text_of = [](const nlohmann::ordered_json& what) {
    return what.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  };
  std::string text = text_of(json);
  if (text.size() > kBundleMaxJson_bytes) {
    // What readers refuse is no use: of so many threads only the histories are told.
    about_.threads.clear();
    json["threads"] = threads_json(threads_, about_);
    text = text_of(json);
  }
  return write_file(folder() + "/" + kBundleName, as_bytes(text));
}

}  // namespace tailtrace
