#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "decoder/record/record_stream.h"
#include "decoder/record/stream_format.h"

namespace tailtrace {
namespace {

constexpr std::size_t kMaxProblems = 100;
// Missing records between others are filled in up to here; a file may claim any position.
constexpr std::uint64_t kMaxHole_records = 1 << 24;
// What is missing was in chunks that are damaged, each of which held this many times its bytes at
// most: records that all are alike pack that well.
constexpr std::uint64_t kMaxPacking = 1024;

// The size is a claim: memory is taken as it proves true. Nothing when it does not.
std::optional<Bytes> unpack_zstd(ByteSpan stored, std::uint64_t plain_bytes) {
  constexpr std::uint64_t kStep_bytes = 64 << 10;
  const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(),
                                                                     &ZSTD_freeDCtx);
  Bytes plain;
  ZSTD_inBuffer in{stored.data(), stored.size(), 0};
  for (std::size_t left = 1; left != 0;) {
    const std::size_t begin = plain.size();
    const std::uint64_t step = std::max<std::uint64_t>(begin, kStep_bytes);
    plain.resize(static_cast<std::size_t>(std::min(plain_bytes, begin + step)));
    ZSTD_outBuffer out{plain.data() + begin, plain.size() - begin, 0};
    left = ZSTD_decompressStream(context.get(), &out, &in);
    const bool is_stuck = left != 0 && out.pos == 0 && (in.pos == in.size || out.size == 0);
    if (ZSTD_isError(left) != 0 || is_stuck) return std::nullopt;
    plain.resize(begin + out.pos);
  }
  if (plain.size() != plain_bytes || in.pos != in.size) return std::nullopt;
  return plain;
}

class Parser {
 public:
  Parser(ByteSpan bytes, const std::string& name, std::uint64_t limit_bytes)
      : bytes_(bytes), name_(name), left_bytes_(limit_bytes) {}

  Result<RecordStream> parse();

 private:
  Result<void> parse_header();
  bool parse_chunk();
  std::optional<Bytes> unpack(const StreamChunkHeader& header, ByteSpan stored);
  void take(std::uint32_t kind, const Bytes& payload);
  void take_records(const Bytes& payload);
  void take_code(const Bytes& payload, bool gone);
  void take_end(const Bytes& payload);
  std::uint64_t held() const { return stream_.records.size(); }

  tl::unexpected<Error> refuse(std::string why, std::string fix = {}) const {
    return fail(ErrorCode::kBadInput, "cannot read the record stream " + name_, std::move(why),
                std::move(fix));
  }
  void problem(std::string why) {
    if (stream_.problems.size() >= kMaxProblems) return;
    stream_.problems.push_back(Error{ErrorCode::kBadInput,
                                     "cannot read all of the record stream " + name_,
                                     std::move(why),
                                     {},
                                     fmt::format("the {} records before that are whole", held())});
  }

  ByteSpan bytes_;
  const std::string& name_;
  std::uint64_t left_bytes_;      // that may be unpacked yet
  std::uint64_t lost_bytes_ = 0;  // that damaged chunks can have held
  std::size_t at_ = 0;
  bool ended_ = false;
  RecordStream stream_;
};

Result<void> Parser::parse_header() {
  StreamFileHeader h;
  if (bytes_.size() < sizeof kStreamMagic ||
      std::memcmp(bytes_.data(), kStreamMagic, sizeof kStreamMagic) != 0)
    return refuse("it does not begin as a record stream does");
  if (bytes_.size() < sizeof h)
    return refuse(fmt::format("it has {} bytes, less than its header", bytes_.size()));
  std::memcpy(&h, bytes_.data(), sizeof h);
  if (h.version != kStreamVersion)
    return refuse(
        fmt::format("it has version {}, this program reads version {}", h.version, kStreamVersion),
        "read it with the tailtrace that wrote it");
  if (h.header_size_bytes != sizeof h || h.record_size_bytes != sizeof(BranchRecord))
    return refuse("its header gives sizes that version 1 does not have");
  StreamHeader& header = stream_.header;
  header.thread = {h.pid, h.tid};
  header.clock = h.clock == 1 ? RingClock::kTsc : RingClock::kNone;
  header.first = {h.first_position};
  header.first_epoch = {h.first_epoch};
  header.complete = (h.flags & kStreamComplete) != 0;
  header.engine.assign(h.engine, strnlen(h.engine, sizeof h.engine));
  at_ = sizeof h;
  return {};
}

Result<RecordStream> Parser::parse() {
  if (Result<void> header = parse_header(); !header) return fail(std::move(header.error()));
  while (!ended_ && parse_chunk()) {
  }
  if (!ended_) problem(fmt::format("it is cut short at byte {}", bytes_.size()));
  return std::move(stream_);
}

// The next chunk, if there is one that is not cut short.
bool Parser::parse_chunk() {
  StreamChunkHeader header;
  if (bytes_.size() - at_ < sizeof header) return false;
  std::memcpy(&header, bytes_.data() + at_, sizeof header);
  std::size_t begin = at_ + sizeof header;
  if (header.stored_bytes > bytes_.size() - begin) return false;
  std::optional<Bytes> payload =
      unpack(header, bytes_.subspan(begin, static_cast<std::size_t>(header.stored_bytes)));
  if (payload) {
    take(header.kind, *payload);
  } else {
    lost_bytes_ += std::min(header.plain_bytes, header.stored_bytes * kMaxPacking);
    problem(fmt::format("its chunk at byte {} is damaged or too large", at_));
  }
  std::uint64_t end = begin + header.stored_bytes + stream_padding_bytes(header.stored_bytes);
  at_ = static_cast<std::size_t>(std::min<std::uint64_t>(end, bytes_.size()));
  return true;
}

std::optional<Bytes> Parser::unpack(const StreamChunkHeader& header, ByteSpan stored) {
  if (header.plain_bytes > std::min(kStreamMaxChunk_bytes, left_bytes_) ||
      stream_check(stored) != header.check)
    return std::nullopt;
  left_bytes_ -= header.plain_bytes;
  if ((header.flags & kStreamZstd) == 0) {
    if (header.plain_bytes != stored.size()) return std::nullopt;
    return Bytes(stored.begin(), stored.end());
  }
  return unpack_zstd(stored, header.plain_bytes);
}

void Parser::take(std::uint32_t kind, const Bytes& payload) {
  if (kind == kStreamRecords) take_records(payload);
  if (kind == kStreamCode) take_code(payload, false);
  if (kind == kStreamGone) take_code(payload, true);
  if (kind == kStreamMaps) stream_.maps.append(as_text(payload));
  if (kind == kStreamEnd) take_end(payload);
}

void Parser::take_records(const Bytes& payload) {
  if (payload.size() < 8 || (payload.size() - 8) % sizeof(BranchRecord) != 0)
    return problem(fmt::format("the records at byte {} are not whole", at_));
  auto position = load<std::uint64_t>(payload);
  std::uint64_t next = stream_.header.first.value + held();
  std::uint64_t hole = position - next;
  const bool is_accounted_for =
      hole <= kMaxHole_records && hole * sizeof(BranchRecord) <= lost_bytes_;
  if (position < next || !is_accounted_for || hole * sizeof(BranchRecord) > left_bytes_)
    return problem(fmt::format("the records at byte {} claim position {}, which cannot follow {}",
                               at_, position, next));
  left_bytes_ -= hole * sizeof(BranchRecord);
  lost_bytes_ -= hole * sizeof(BranchRecord);
  BranchRecord missing;
  missing.kind = RecordKind::kGap;
  missing.flags = kFlagSynthetic;
  stream_.records.resize(stream_.records.size() + static_cast<std::size_t>(hole), missing);
  std::size_t count = (payload.size() - 8) / sizeof(BranchRecord), before = stream_.records.size();
  stream_.records.resize(before + count);
  // Nothing of a record is a pointer or an index: any bytes are one.
  if (count != 0)
    std::memcpy(stream_.records.data() + before, payload.data() + 8, count * sizeof(BranchRecord));
}

void Parser::take_code(const Bytes& payload, bool gone) {
  StreamCodeHeader header;
  std::size_t least = sizeof header + (gone ? 8 : 1);
  if (payload.size() < least) return problem(fmt::format("the code at byte {} is not whole", at_));
  std::memcpy(&header, payload.data(), sizeof header);
  StreamCode code{{header.address}, {header.epoch}, {}, 0};
  std::uint64_t size = payload.size() - sizeof header;
  if (gone) size = code.gone_bytes = load<std::uint64_t>(payload, sizeof header);
  if (size == 0 || header.address + size < header.address)
    return problem(fmt::format("the code at byte {} wraps around the address space", at_));
  if (!stream_.code.empty() && code.from < stream_.code.back().from)
    return problem(fmt::format("the code at byte {} is older than what is before it", at_));
  if (!gone) code.bytes.assign(payload.begin() + sizeof header, payload.end());
  stream_.code.push_back(std::move(code));
}

void Parser::take_end(const Bytes& payload) {
  ended_ = true;
  std::uint64_t count = payload.size() == 8 ? load<std::uint64_t>(payload) : ~0ull;
  if (count != held()) problem(fmt::format("records are missing: it had {} of them", count));
}

}  // namespace

Result<RecordStream> parse_record_stream(ByteSpan bytes, const std::string& name,
                                         std::uint64_t limit_bytes) {
  return Parser(bytes, name, limit_bytes).parse();
}

Result<RecordStream> read_record_stream(const std::string& path) {
  constexpr std::uint64_t kMaxPlain_bytes = 16ull << 30;
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return fail(std::move(file.error()));
  return parse_record_stream(file->bytes(), path, kMaxPlain_bytes);
}

}  // namespace tailtrace
