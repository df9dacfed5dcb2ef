// The bundle: a folder with the histories of a program's threads, to be read on another day.
// BUNDLE.md draws it.
//
// Threading: a writer belongs to one thread at a time; the rest are values and pure functions.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/own_folder.h"
#include "decoder/base/result.h"
#include "decoder/bundle/bundle_about.h"
#include "decoder/bundle/lldb_writer.h"
#include "decoder/history/opened_thread.h"
#include "decoder/history/snapshot_file.h"

namespace tailtrace {

// A thread that a bundle holds, before any of it is read.
struct BundleThread {
  ThreadId thread;
  std::string engine;
  std::uint64_t records = 0;  // how many
  std::string records_path;
  std::string stream_path;
  // Of the bundle; maps name the copies of its modules.
  std::string folder = {};  // absolute
  std::shared_ptr<const BundleAbout> about = {};
};

struct Bundle {
  std::string path;
  std::vector<BundleThread> threads;
  std::shared_ptr<const BundleAbout> about;  // never null
};

// What to say where nothing is at the path of a recording, whichever kind it should be.
Error missing_recording(const std::string& path);

// Whether a folder says that it is a bundle.
bool is_bundle(const std::string& path);

// Errors: kSystem or kPermission when it cannot be read; kBadInput when it is none or of another
// version, or has a symbolic link in the place of a file.
Result<Bundle> read_bundle(const std::string& path);

// The same for the text of a bundle.json in the folder `path`.
Result<Bundle> parse_bundle(std::string_view text, const std::string& path);

// Records in place, for as long as `owner` lives.
struct BundleRecords {
  std::shared_ptr<const void> owner;
  std::span<const BranchRecord> records;
};

// Errors: kBadInput when the file is not as long as it should be, or a link; it cannot be read.
Result<BundleRecords> map_records(const BundleThread& thread);

// The position of the first record. Errors: as load_snapshot.
Result<Position> first_position(const BundleThread& thread);

// Everything of a thread; its records are copied. Errors: as map_records and load_snapshot.
Result<LoadedSnapshot> load_thread(const BundleThread& thread);

// The newest `limit_records` of a thread, in place. Errors: the same.
Result<OpenedThread> open_thread(const BundleThread& thread, std::uint64_t limit_records = ~0ull);

// What was not finished goes away with its writer; of one that was killed with the next one of the
// same path.
class BundleWriter {
 public:
  // The bundle will be at `path`. Errors: kUsage when something is there already; kSystem,
  // kPermission.
  static Result<BundleWriter> create(const std::string& path);

  // `maps` as save_snapshot has it. The files in which the process named code that it generated are
  // copied: its perf map, where there is a path of it, and the jitdumps that it has mapped. What of
  // these cannot be read is among remarks(), and which code LLDB cannot show. Errors: kSystem, as
  // when the disk is full; kUsage when a bundle cannot hold that many.
  Result<void> add(const ThreadSnapshot& snapshot, std::string_view maps,
                   const std::string& perf_map = {});
  std::vector<Error> remarks() const;
  // What every face says of it when it is finished: how many threads are in which folder.
  std::string told() const;

  // A file that was executed, with the copy of it at `from`; empty: there shall be none. Errors:
  // kSystem, as when the disk is full.
  Result<void> add_module(BundleModule module, const std::string& from);

  // Copies the programs and libraries that the process, as long as it lives, has mapped and that
  // were deleted: nobody has them later. add() does so, too. Errors: as add_module.
  Result<void> keep_deleted(std::int32_t pid, std::string_view maps,
                            const CodeImage* code = nullptr);

  // Takes over what another bundle tells beside the thread's history: copies of modules that this
  // one has not yet, the thread's state, and, where nobody describes it, why it was made, with the
  // core file. Errors: as add_module.
  Result<void> carry_over(const BundleThread& thread);

  // The folder, for files that it shall hold beside the histories; describe() names them.
  const std::string& folder() const { return folder_.path(); }
  // Where it will be.
  const std::string& path() const { return path_; }
  void describe(BundleAbout about) { about_ = std::move(about); }

  // The bundle is at its place, and on the disk, from here on. Errors: kUsage when there is no
  // thread in it; kSystem.
  Result<void> finish();

 private:
  BundleWriter(std::string path, OwnFolder folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  Result<void> write_description();
  Result<void> add_generated(std::string_view maps, const std::string& path,
                             const std::string& perf_map);
  Result<void> copy_generated(const std::string& path, const std::string& from);
  std::string name_of_deleted(std::string_view id, std::string_view path);
  std::string tell_deleted_apart(std::string_view maps);
  Result<void> add_told_apart(const ThreadSnapshot& snapshot, std::string_view maps,
                              const std::string& perf_map);

  Bytes add_for_lldb(const ThreadSnapshot& snapshot, std::string_view maps,
                     const std::string& trace);

  std::string path_;
  OwnFolder folder_;  // beside its place
  std::vector<BundleThread> threads_;
  std::vector<BundleModule> modules_;
  std::map<std::string, std::vector<std::string>> deleted_;  // which there were, by their paths
  std::set<std::string> tried_;          // of which process, and which: it is looked for once
  std::vector<BundleModule> generated_;  // copies of files that name generated code
  std::vector<Error> remarks_;
  BundleAbout about_;
  LldbWriter lldb_;
  // Held so that one is free to take the folder away with, however short descriptors have become.
  UniqueFd spare_;
};

}  // namespace tailtrace
