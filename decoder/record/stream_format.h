// The layout of a record stream as STREAM.md draws it.
//
// Threading: constants and pure functions.
#pragma once

#include <cstddef>

#include "decoder/base/bytes.h"

namespace tailtrace {

constexpr char kStreamMagic[8] = {'T', 'T', 'R', 'E', 'C', 'S', '\n', '\0'};
constexpr std::uint32_t kStreamVersion = 1;
constexpr std::uint32_t kStreamComplete = 1;  // flag of the header
constexpr std::uint32_t kStreamZstd = 1;      // flag of a chunk
constexpr std::uint64_t kStreamMaxChunk_bytes = 64 << 20;

struct StreamFileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_size_bytes;
  std::uint32_t record_size_bytes;
  std::int32_t pid;
  std::int32_t tid;
  std::uint32_t clock;
  std::uint64_t first_position;
  std::uint32_t first_epoch;
  std::uint32_t flags;
  char engine[16];
};
static_assert(sizeof(StreamFileHeader) == 64);
static_assert(offsetof(StreamFileHeader, first_position) == 32);
static_assert(offsetof(StreamFileHeader, engine) == 48);

struct StreamChunkHeader {
  std::uint32_t kind;
  std::uint32_t flags;
  std::uint64_t stored_bytes;
  std::uint64_t plain_bytes;
  std::uint64_t check;
};
static_assert(sizeof(StreamChunkHeader) == 32);

// Where code is: before the bytes of a CODE chunk and the size of a GONE chunk.
struct StreamCodeHeader {
  std::uint64_t address;
  std::uint32_t epoch;
  std::uint32_t zero;
};
static_assert(sizeof(StreamCodeHeader) == 16);

constexpr std::uint32_t stream_kind(const char (&letters)[5]) {
  std::uint32_t kind = 0;
  for (int i = 3; i >= 0; --i) kind = kind << 8 | static_cast<unsigned char>(letters[i]);
  return kind;
}
constexpr std::uint32_t kStreamRecords = stream_kind("RECS");
constexpr std::uint32_t kStreamCode = stream_kind("CODE");
constexpr std::uint32_t kStreamGone = stream_kind("GONE");
constexpr std::uint32_t kStreamMaps = stream_kind("MAPS");
constexpr std::uint32_t kStreamEnd = stream_kind("END ");

constexpr std::uint64_t stream_padding_bytes(std::uint64_t stored_bytes) {
  return (8 - stored_bytes % 8) % 8;
}

// FNV-1a, 64 bits.
inline std::uint64_t stream_check(ByteSpan bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

}  // namespace tailtrace
