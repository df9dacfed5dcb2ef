// ProcessFolder: what a process run under qemu has left in its folder of the session so far, be it
// alive or dead. RING.md (decoder/record) draws the files.
//
// Everything read is checked: a folder may come from anywhere. An open folder stays readable when
// it is deleted.
//
// Threading: one thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decoder/code/code_image.h"
#include "decoder/record/ring.h"
#include "plugin/engines/qemu/session_format.h"

namespace tailtrace {

// What could not be recorded, and why; all 0 in a whole recording.
struct RecordingLosses {
  std::uint64_t blocks = 0;   // pieces of code that found no room; gap records stand for them
  std::uint64_t threads = 0;  // threads that got no ring
  std::uint64_t rings = 0;    // rings of ended threads that were deleted to make room
};

class ProcessFolder {
 public:
  // Errors: no such folder; a file in it that is missing, cut short or of another version.
  static Result<ProcessFolder> open(const std::string& path);

  const std::string& path() const { return path_; }
  std::int32_t pid() const { return pid_; }
  // How many programs the process executed before this one.
  std::uint32_t program_index() const { return program_index_; }
  bool has_stub() const { return has_stub_; }
  // Whether the recorded process is still there (it may have executed another program meanwhile).
  bool is_alive() const;
  RecordingLosses losses() const;
  // Lets the process, which stands still in its stub, make this many more threads before one stops
  // with a reply that says `create`. Errors: kSystem.
  Result<void> set_thread_room(std::uint64_t threads);
  // Has the process, which stands still in its stub, stop for accesses to this memory. Errors:
  // kSystem.
  Result<void> set_watched(const WatchedMemory& watched);
  // Has these threads of it stop right behind a system call. Errors: kSystem.
  Result<void> set_stepped(const SteppedThreads& stepped);
  // Has it stop as it enters these system calls. Errors: kSystem.
  Result<void> set_caught(const CaughtNumbers& caught);
  // Has it get these signals without a stop that is told. Errors: kSystem.
  Result<void> set_passed(const PassedNumbers& passed);
  // Has it run without a debugger from its next request or stop on. Errors: kSystem.
  Result<void> set_letting_go(const LettingGo& letting_go);
  // The path of its perf map (decoder/symbols/JIT.md): the kept one, else that of a process which
  // is alive; empty: there is none.
  std::string perf_map() const;

  // The rings of all threads, ended ones included: of the one in which a signal ended the program,
  // then the others in the order in which they were made. Looks for new ones. Errors: not one of
  // them can be read.
  Result<std::vector<const Ring*>> rings();
  // Why those that were found could not be read.
  const std::vector<Error>& damaged() const { return damaged_; }

  // The newest ring of a thread; its pid does not matter. Errors: kGone when there is none.
  Result<const Ring*> ring_of(std::int32_t tid);
  // The same where the thread may just be made: its ring is there before it has the number, for
  // which this waits, a second at most.
  Result<const Ring*> ring_of_new(std::int32_t tid);

  // A ring's open block. Errors: kBadInput when it is nowhere.
  Result<RingBlock> open_block(const Ring& ring) const;

  // The code as a thread saw it, whose epochs were these numbers of the process, oldest first:
  // epoch i of the image is the state after the process's epoch `epochs[i]`.
  Result<std::shared_ptr<const CodeImage>> code(const std::vector<std::uint32_t>& epochs);
  // The former maps (decoder/code/former_maps.h) for that image.
  std::string former_maps(const std::vector<std::uint32_t>& epochs) const;

 private:
  Result<void> read_process_file();
  Result<void> open_blocks();
  Result<void> open_code();
  Result<void> find_rings();
  Result<void> write_header(const void* from, std::size_t size_bytes, std::size_t offset);
  const Ring* known_ring_of(std::int32_t tid) const;
  Result<void> read_new_code();

  std::string path_;
  std::int32_t pid_ = 0;
  std::uint32_t program_index_ = 0;
  std::uint64_t start_time_ = 0;
  bool has_stub_ = false;

  MappedFile blocks_file_;
  const BlocksHeader* blocks_ = nullptr;
  std::shared_ptr<const MappedFile> code_file_;
  const CodeHeader* code_ = nullptr;

  std::map<std::uint32_t, Ring> rings_;    // by slot
  std::vector<Error> damaged_;             // rings that cannot be read
  bool knows_all_rings_ = false;           // nobody makes more
  std::vector<const CodeEntry*> entries_;  // those with epoch 0 first, then as they came
  std::uint64_t read_bytes_ = 0;           // of the code file
  std::vector<std::uint32_t> image_epochs_;
  std::shared_ptr<const CodeImage> image_;  // of image_epochs_; null: to be made
};

}  // namespace tailtrace
