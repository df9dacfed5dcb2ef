#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "decoder/base/durable.h"
#include "decoder/base/file.h"
#include "decoder/base/place.h"
#include "decoder/bundle/bundle.h"
#include "decoder/bundle/bundle_about_json.h"
#include "decoder/bundle/bundle_format.h"
#include "decoder/bundle/lldb_bundle.h"
#include "decoder/history/symbolizer.h"
#include "decoder/symbols/generated_files.h"
#include "decoder/symbols/jit_dump.h"

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
  for (const BundleModule& known : modules_)
    if (known.path == module.path && known.build_id == module.build_id) return {};
  module.copy.clear();
  if (!from.empty()) {
    const std::string place = fmt::format("{}/{}", kModulesFolder, modules_.size() + 1);
    for (const std::string& folder : {std::string(kModulesFolder), place})
      if (auto ok = make_folder(this->folder() + "/" + folder); !ok) return ok;
    module.copy.append(place).append("/").append(base_name(module.path));
    if (auto ok = copy_file(from, folder() + "/" + module.copy); !ok) return ok;
  }
  modules_.push_back(std::move(module));
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
  // LLDB takes the file that is at the path, so that it is told of none that is another one.
  const Bytes pt = lldb_.add(snapshot, maps_with_other_builds(std::string(maps), modules_), trace);
  return pt.empty() ? Result<void>() : write_file(folder() + "/" + trace, pt);
}

std::string BundleWriter::told() const {
  return fmt::format("Saved {} thread{} in {}.", threads_.size(), threads_.size() == 1 ? "" : "s",
                     path_);
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
  if (auto ok = write_file(folder() + "/" + kLldbBundleName, as_bytes(lldb_.description())); !ok)
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
