// RecordedPrograms: the code that the processes of a perf.data file had mapped, by time, out of the
// files that it names.
//
// A file is believed when it is the one that was recorded: its build id is compared, and where none
// was recorded its inode. Code of files that are not there, or are others now, is not known: gaps
// stand for what ran there, and a problem names the file. Code that a program generated comes out
// of the jitdumps (decoder/symbols/JIT.md) that it has mapped, from when it was made.
//
// Threading: one thread at a time; what it hands out does not change any more once all was told.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/code/code_image.h"
#include "decoder/perf/events.h"
#include "decoder/pt/tail.h"

namespace tailtrace::perf {

// Where files of a recording are looked for.
struct CodeFiles {
  std::map<std::string, std::string> build_ids;  // by name, in hexadecimal
  std::string build_id_cache;                    // perf's, as ~/.debug; empty: there is none
  bool has_tsc = false;  // times are of the time stamp counter; else nanoseconds
};

class RecordedPrograms {
 public:
  // What one file can make grow.
  static constexpr std::size_t kMaxPrograms = 1 << 14;
  static constexpr std::size_t kMaxChanges = 1 << 20;     // of any program, those copied included
  static constexpr std::uint64_t kMaxPages = 1ull << 27;  // looked at, of 4 KiB
  // Of generated code: a jitdump can say of one function that it was moved many times.
  static constexpr std::uint64_t kMaxGenerated_pages = 1ull << 20;
  static constexpr std::size_t kMaxMissing = 4096;
  static constexpr std::size_t kMaxUnknown = 4096;  // ranges of a program

  explicit RecordedPrograms(CodeFiles files) : files_(std::move(files)) {}

  // In the order of time, which is the hardware's clock; 0: before all else.
  void mapped(std::uint64_t time, const MmapEvent& map);
  void executed(std::uint64_t time, std::int32_t pid);
  void forked(std::int32_t pid, std::int32_t parent);
  // All was told.
  void finish();

  struct Line {
    Address end;
    std::string text;  // as /proc/PID/maps has it
    // Of a file: its path, and where its begin would be. Empty: it is none.
    std::string file = {};
    std::uint64_t origin = 0;
  };
  // Code that a program generated.
  struct Generated {
    std::uint64_t time = 0;
    Address begin;
    ByteSpan code;
    std::shared_ptr<const MappedFile> file;  // that it lies in
  };
  struct Program {
    std::shared_ptr<CodeImage> image = std::make_shared<CodeImage>();
    std::vector<pt::EpochBegin> begins;  // of all epochs but the first
    std::map<Address, Line> lines;       // of its map, by begin
    std::deque<std::string> former;      // what was there before, oldest first
    std::size_t former_bytes = 0;
    std::vector<std::pair<Address, Address>> unknown;  // code was there that nobody knows
    std::vector<Generated> generated;                  // still to come, the next one last
    std::set<std::string> dumps;                       // that tell of it

    std::size_t changes = 0;

    std::string maps() const;
    // As decoder/code/former_maps.h has it.
    std::string former_maps() const;
  };
  // Of a process that was not told of: an empty one.
  const Program& of(std::int32_t pid) const;
  const std::map<std::int32_t, Program>& all() const { return programs_; }

  // Which files are not there; nothing when all are.
  std::optional<Error> problem() const;

 private:
  // A file as far as it can be used; no file: not at all.
  struct Found {
    std::shared_ptr<const MappedFile> file;
    std::string path;
  };

  const Found& find(const MmapEvent& map);
  Found look_for(const MmapEvent& map, const std::string& wanted_id);
  Program* program(std::int32_t pid);
  void take_dump(Program& program, std::uint64_t time, const Found& found);
  void generate_until(Program& program, std::uint64_t time);
  static void add_code(Program& program, std::uint64_t time, Address begin, ByteSpan code,
                       std::shared_ptr<const MappedFile> file);
  bool spend(std::size_t changes);
  static void put_line(Program& program, Address begin, Line line, std::uint64_t time);
  static void keep_former(Program& program, const Line& line, Epoch until);
  static Epoch new_epoch(Program& program, std::uint64_t time);

  CodeFiles files_;
  std::map<std::int32_t, Program> programs_;
  std::map<std::pair<std::string, std::string>, Found> found_;  // by name and build id or inode
  std::map<std::string, std::string> missing_;                  // files, and why
  std::size_t changes_ = 0;
  std::uint64_t pages_ = 0;
  std::uint64_t generated_pages_ = 0;
};

}  // namespace tailtrace::perf
