// The record stream: a file with one thread's records, the code they ran and the names of the files
// it came from. STREAM.md draws it.
//
// Threading: a writer belongs to one thread at a time; the rest are values and pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decoder/base/file.h"
#include "decoder/base/result.h"
#include "decoder/record/ring_format.h"

namespace tailtrace {

struct StreamHeader {
  ThreadId thread;
  std::string engine;  // 16 bytes at most
  RingClock clock = RingClock::kNone;
  Position first;
  Epoch first_epoch;
  bool complete = false;  // nothing older than `first` was ever written
};

// Code at an address from an epoch on; no bytes: `gone_bytes` of it are not known any more.
struct StreamCode {
  Address address;
  Epoch from;
  Bytes bytes;
  std::uint64_t gone_bytes = 0;
};

struct RecordStream {
  StreamHeader header;
  std::vector<BranchRecord> records;  // records[i] has position header.first + i
  std::vector<StreamCode> code;       // in order of epochs
  std::string maps;
  std::vector<Error> problems;  // what could not be read
};

// Everything in a stream that is whole, up to `limit_bytes` of it unpacked. `name` is what errors
// call it. Errors: kBadInput when it is no stream or of another version.
Result<RecordStream> parse_record_stream(ByteSpan bytes, const std::string& name,
                                         std::uint64_t limit_bytes);

// The same for a file of any size. Errors: it cannot be read; kBadInput as above.
Result<RecordStream> read_record_stream(const std::string& path);

class RecordStreamWriter {
 public:
  enum class Packing { kNone, kZstd };

  // Writes to `path`.part, with mode 0600. REQUIRES: a folder in which that is nobody else's.
  // Errors: it cannot be made; kUsage for a header that cannot be written.
  static Result<RecordStreamWriter> create(const std::string& path, const StreamHeader& header,
                                           Packing packing);
  RecordStreamWriter(RecordStreamWriter&&) noexcept = default;
  // What was not finished goes away.
  ~RecordStreamWriter();

  // Errors of all these: kSystem, as when the disk is full.
  Result<void> add_records(std::span<const BranchRecord> records);
  // REQUIRES: epochs that never go down.
  Result<void> add_code(const StreamCode& code);
  Result<void> add_maps(std::string_view maps);
  // The file is at its place from here on, instead of what was there: on the disk, too, unless
  // somebody sees to that later.
  enum class Sync { kNow, kLater };
  Result<void> finish(Sync sync = Sync::kNow);

 private:
  RecordStreamWriter(std::string path, Packing packing)
      : path_(std::move(path)), packing_(packing) {}

  Result<void> write(ByteSpan bytes);
  Result<void> write_chunk(std::uint32_t kind, ByteSpan payload);
  std::string part_path() const { return path_ + ".part"; }

  std::string path_;
  Packing packing_;
  UniqueFd fd_;
  Position next_;
  std::uint64_t records_ = 0;
};

}  // namespace tailtrace
