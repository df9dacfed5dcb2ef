#include "tests/support/perf_files.h"

#include <fmt/format.h>
#include <zstd.h>

#include <cassert>
#include <fstream>

#include "decoder/perf_data/export.h"

namespace tailtrace {

using namespace perf;

FiledProgram FiledProgram::write(const ToyProgram& program, const std::string& path) {
  FiledProgram filed{program.image(), path, 0};
  ByteSpan code = filed.image->at(ToyProgram::kBase, ~std::size_t{0});
  filed.size_bytes = code.size();
  std::ofstream(path, std::ios::binary) << as_text(code);
  return filed;
}

std::string FiledProgram::maps() const {
  return fmt::format("{:x}-{:x} r-xp 00000000 00:00 0 {}\n", ToyProgram::kBase.value,
                     ToyProgram::kBase.value + size_bytes, path);
}

Bytes perf_file_of(const ToyRun& run, const FiledProgram& program) {
  PerfDataExport perf_data;
  History history(run.snapshot);
  bool added = perf_data
                   .add(
                       history, [&](Epoch) { return parse_maps(program.maps()); }, ~0ull)
                   .has_value();
  assert(added);
  (void)added;
  return perf_data.finish();
}

namespace {

void append(Bytes& to, ByteSpan bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// In two records, of which the first ends inside one of the packed.
Bytes packed_records(ByteSpan records) {
  Bytes all;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  for (ByteSpan part :
       {records.first(records.size() / 2 + 3), records.subspan(records.size() / 2 + 3)}) {
    Bytes packed(ZSTD_compressBound(part.size()) + 64);
    ZSTD_inBuffer in{part.data(), part.size(), 0};
    ZSTD_outBuffer out{packed.data(), packed.size(), 0};
    [[maybe_unused]] std::size_t left =
        ZSTD_compressStream2(context.get(), &out, &in, ZSTD_e_flush);
    assert(left == 0);
    packed.resize((out.pos + 7) & ~std::size_t{7});
    // What fills a record up would be read as packed, too: the length is exact.
    packed.resize(out.pos);
    RecordHeader header{kRecordCompressed, 0, static_cast<std::uint16_t>(8 + packed.size())};
    append(all, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
    append(all, packed);
  }
  return all;
}

}  // namespace

Bytes as_pipe(ByteSpan file, bool packed) {
  Bytes pipe(file.begin(), file.begin() + 8);
  pipe.resize(kHeaderPipeBytes);
  pipe[kHeaderSize] = kHeaderPipeBytes;
  const auto attrs = load<std::uint64_t>(file, kHeaderAttrs);
  const auto attr_size = load<std::uint64_t>(file, kHeaderAttrSize) - 16;
  const auto ids = load<std::uint64_t>(file, attrs + attr_size);
  RecordHeader header{kRecordHeaderAttr, 0, static_cast<std::uint16_t>(8 + attr_size + 8)};
  append(pipe, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  append(pipe, file.subspan(attrs, attr_size));
  append(pipe, file.subspan(ids, 8));
  ByteSpan data = file.subspan(load<std::uint64_t>(file, kHeaderData),
                               load<std::uint64_t>(file, kHeaderData + 8));
  if (!packed) {
    append(pipe, data);
    return pipe;
  }
  // The kernel's lie between the description of the trace and the trace.
  std::size_t begin = load<RecordHeader>(data).size_bytes, end = begin;
  while (load<RecordHeader>(data, end).type != kRecordAuxtrace)
    end += load<RecordHeader>(data, end).size_bytes;
  append(pipe, data.first(begin));
  append(pipe, packed_records(data.subspan(begin, end - begin)));
  append(pipe, data.subspan(end));
  return pipe;
}

Bytes perf_record(std::uint32_t type, std::uint16_t misc, const std::vector<std::uint64_t>& words,
                  std::string_view text) {
  Bytes body;
  for (std::uint64_t word : words) append(body, {reinterpret_cast<std::uint8_t*>(&word), 8});
  append(body, as_bytes(text));
  body.resize((body.size() + 7) & ~std::size_t{7});
  RecordHeader header{type, misc, static_cast<std::uint16_t>(8 + body.size())};
  Bytes record;
  append(record, {reinterpret_cast<const std::uint8_t*>(&header), sizeof header});
  append(record, body);
  return record;
}

std::vector<Address> instructions_of(const OpenedThread& opened) {
  History history(opened.frame, opened.source, {});
  HistoryCursor cursor(history);
  std::vector<Address> shown;
  for (cursor.seek_to_oldest(); cursor.valid(); cursor.next())
    if (!cursor.item().is_gap) shown.push_back(cursor.item().instruction.address);
  return shown;
}

std::size_t gaps_of(const OpenedThread& opened) {
  return History(opened.frame, opened.source, {}).gaps();
}

}  // namespace tailtrace
