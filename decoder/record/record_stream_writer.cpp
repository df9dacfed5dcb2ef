#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <cstdio>

#include "decoder/base/durable.h"
#include "decoder/record/record_stream.h"
#include "decoder/record/stream_format.h"

namespace tailtrace {
namespace {

// Small enough that little is lost with a chunk, large enough to pack well.
constexpr std::size_t kRecordsPerChunk = 1 << 13;
constexpr int kZstdLevel = 3;

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* raw = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

// The packed payload; empty when packing does not make it smaller.
Bytes pack(ByteSpan payload) {
  Bytes packed(ZSTD_compressBound(payload.size()));
  std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), payload.data(), payload.size(), kZstdLevel);
  packed.resize(ZSTD_isError(size) != 0 || size >= payload.size() ? 0 : size);
  return packed;
}

}  // namespace

Result<RecordStreamWriter> RecordStreamWriter::create(const std::string& path,
                                                      const StreamHeader& header, Packing packing) {
  StreamFileHeader h = {};
  if (header.engine.size() > sizeof h.engine)
    return fail(ErrorCode::kUsage, "cannot write the record stream " + path,
                fmt::format("the engine's name is longer than {} bytes", sizeof h.engine));
  RecordStreamWriter writer(path, packing);
  writer.fd_ = UniqueFd(::open(writer.part_path().c_str(),
                               O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!writer.fd_) return fail(system_error("cannot make " + writer.part_path()));
  std::copy(std::begin(kStreamMagic), std::end(kStreamMagic), h.magic);
  h.version = kStreamVersion;
  h.header_size_bytes = sizeof h;
  h.record_size_bytes = sizeof(BranchRecord);
  h.pid = header.thread.pid;
  h.tid = header.thread.tid;
  h.clock = static_cast<std::uint32_t>(header.clock);
  h.first_position = header.first.value;
  h.first_epoch = header.first_epoch.value;
  h.flags = header.complete ? kStreamComplete : 0;
  std::copy(header.engine.begin(), header.engine.end(), h.engine);
  writer.next_ = header.first;
  Result<void> written = writer.write({reinterpret_cast<const std::uint8_t*>(&h), sizeof h});
  if (!written) return fail(std::move(written.error()));
  return writer;
}

RecordStreamWriter::~RecordStreamWriter() {
  if (fd_) ::unlink(part_path().c_str());
}

Result<void> RecordStreamWriter::write(ByteSpan bytes) {
  assert(fd_);
  return write_all(fd_.get(), bytes, part_path());
}

Result<void> RecordStreamWriter::write_chunk(std::uint32_t kind, ByteSpan payload) {
  assert(payload.size() <= kStreamMaxChunk_bytes);
  Bytes packed;
  if (packing_ == Packing::kZstd) packed = pack(payload);
  ByteSpan stored = packed.empty() ? payload : ByteSpan(packed);
  StreamChunkHeader header = {kind, packed.empty() ? 0 : kStreamZstd, stored.size(), payload.size(),
                              stream_check(stored)};
  Bytes chunk;
  chunk.reserve(sizeof header + stored.size() + 8);
  append(chunk, header);
  chunk.insert(chunk.end(), stored.begin(), stored.end());
  chunk.resize(chunk.size() + stream_padding_bytes(stored.size()));
  return write(chunk);
}

Result<void> RecordStreamWriter::add_records(std::span<const BranchRecord> records) {
  while (!records.empty()) {
    std::span<const BranchRecord> some = records.first(std::min(records.size(), kRecordsPerChunk));
    Bytes payload;
    append(payload, next_.value);
    const auto* raw = reinterpret_cast<const std::uint8_t*>(some.data());
    payload.insert(payload.end(), raw, raw + some.size_bytes());
    if (Result<void> written = write_chunk(kStreamRecords, payload); !written) return written;
    next_.value += some.size();
    records_ += some.size();
    records = records.subspan(some.size());
  }
  return {};
}

Result<void> RecordStreamWriter::add_code(const StreamCode& code) {
  constexpr std::size_t kMaxPiece_bytes = 1 << 20;
  StreamCodeHeader header = {code.address.value, code.from.value, 0};
  if (code.bytes.empty()) {
    Bytes payload;
    append(payload, header);
    append(payload, code.gone_bytes);
    return write_chunk(kStreamGone, payload);
  }
  for (ByteSpan left = code.bytes; !left.empty();) {
    ByteSpan some = left.first(std::min(left.size(), kMaxPiece_bytes));
    Bytes payload;
    append(payload, header);
    payload.insert(payload.end(), some.begin(), some.end());
    if (Result<void> written = write_chunk(kStreamCode, payload); !written) return written;
    header.address += some.size();
    left = left.subspan(some.size());
  }
  return {};
}

Result<void> RecordStreamWriter::add_maps(std::string_view maps) {
  return write_chunk(kStreamMaps, as_bytes(maps.substr(0, kStreamMaxChunk_bytes)));
}

Result<void> RecordStreamWriter::finish(Sync sync) {
  Bytes payload;
  append(payload, records_);
  if (Result<void> written = write_chunk(kStreamEnd, payload); !written) return written;
  // Written means on the disk: the name must not come to stand for a file that is not whole.
  if (sync == Sync::kNow)
    if (auto ok = sync_file(fd_.get(), part_path()); !ok) return ok;
  if (std::rename(part_path().c_str(), path_.c_str()) != 0)
    return fail(system_error("cannot put the record stream at " + path_));
  fd_.reset();
  return {};
}

}  // namespace tailtrace
