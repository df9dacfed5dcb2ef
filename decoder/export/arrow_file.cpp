#include "decoder/export/arrow_file.h"

#include <algorithm>

#include "decoder/export/flat_writer.h"
#include "decoder/export/range_records.h"
#include "decoder/record/record_columns.h"

namespace tailtrace {
namespace {

constexpr std::string_view kMagic = "ARROW1";
constexpr std::size_t kBatch_records = std::size_t{1} << 16;
constexpr std::size_t kAlign_bytes = 8;

// Numbers of Arrow's schema (Message.fbs, Schema.fbs, File.fbs).
constexpr std::uint64_t kVersion5 = 4;
constexpr std::uint64_t kSchemaMessage = 1, kBatchMessage = 3;
constexpr std::uint64_t kIntType = 2;

struct Column {
  std::string_view name;
  unsigned bits;
  bool is_signed;
};

// Those of the thread come first.
std::vector<Column> columns() {
  std::vector<Column> columns = {{"pid", 32, true}, {"tid", 32, true}};
  for (const RecordColumn& column : kRecordColumns)
    columns.push_back({column.name, static_cast<unsigned>(column.size_bytes) * 8, false});
  return columns;
}

std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + kAlign_bytes - 1) / kAlign_bytes * kAlign_bytes;
}

// Schema: fields (1). Field: name (0), type's kind (2), type (3). Int: bits (0), signed (1).
void put_schema(FlatWriter& flat, FlatWriter::Reference schema) {
  const std::vector<Column> all = columns();
  const FlatField schema_fields[] = {flat_reference(1)};
  const auto list = flat.table(schema, schema_fields);
  const auto places = flat.references(list[0], all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FlatField field_fields[] = {
        flat_reference(0), flat_reference(3), flat_reference(5), {2, 1, kIntType}};
    const auto field = flat.table(places[i], field_fields);
    flat.text(field[0], all[i].name);
    const FlatField int_fields[] = {{0, 4, all[i].bits}, {1, 1, all[i].is_signed}};
    flat.table(field[1], int_fields);
    flat.references(field[2], 0);  // no children
  }
}

// Message: version (0), header's kind (1), header (2), size of the body (3). Returns the header's
// reference.
FlatWriter::Reference begin_message(FlatWriter& flat, std::uint64_t kind,
                                    std::uint64_t body_bytes) {
  const FlatField fields[] = {
      {3, 8, body_bytes}, flat_reference(2), {0, 2, kVersion5}, {1, 1, kind}};
  return flat.table(FlatWriter::kRoot, fields)[1];
}

std::string_view text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append(Bytes& body, std::uint64_t value, std::size_t size_bytes) {
  for (; size_bytes != 0; --size_bytes, value >>= 8)
    body.push_back(static_cast<std::uint8_t>(value));
}

// The columns one behind the other, and where each of them lies: of each two buffers, of which the
// first would say what is missing.
Bytes body_of(ThreadId thread, std::span<const BranchRecord> records,
              std::vector<std::uint64_t>& buffers) {
  Bytes body;
  auto close = [&](std::size_t begin) {
    buffers.insert(buffers.end(), {begin, 0, begin, body.size() - begin});
    body.resize(padded(body.size()));
  };
  for (std::int32_t number : {thread.pid, thread.tid}) {
    const std::size_t begin = body.size();
    for (std::size_t i = 0; i < records.size(); ++i)
      append(body, static_cast<std::uint32_t>(number), 4);
    close(begin);
  }
  for (const RecordColumn& column : kRecordColumns) {
    const std::size_t begin = body.size();
    for (const BranchRecord& record : records) {
      const auto* field = reinterpret_cast<const std::uint8_t*>(&record) + column.offset_bytes;
      body.insert(body.end(), field, field + column.size_bytes);
    }
    close(begin);
  }
  return body;
}

}  // namespace

void ArrowFile::put(std::string_view bytes) {
  more_ = more_ && sink_(bytes);
  written_bytes_ += bytes.size();
}

// Returns its size with what stands before it.
std::uint64_t ArrowFile::put_message(const Bytes& metadata) {
  Bytes head;
  append(head, 0xffffffff, 4);
  append(head, metadata.size(), 4);
  put(text(head));
  put(text(metadata));
  return head.size() + metadata.size();
}

void ArrowFile::begin() {
  put(std::string(kMagic) + std::string(kAlign_bytes - kMagic.size(), '\0'));
  FlatWriter flat;
  put_schema(flat, begin_message(flat, kSchemaMessage, 0));
  put_message(flat.finish());
}

void ArrowFile::add(const History& history, Range range) {
  std::vector<BranchRecord> batch;
  each_record_of(history, range, [&](const BranchRecord& record) {
    batch.push_back(record);
    if (batch.size() < kBatch_records) return true;
    put_batch(history.frame().thread, batch);
    batch.clear();
    return more_;
  });
  if (!batch.empty()) put_batch(history.frame().thread, batch);
}

// RecordBatch: how many rows (0), of each column again, and what is null (1), buffers (2).
void ArrowFile::put_batch(ThreadId thread, std::span<const BranchRecord> records) {
  std::vector<std::uint64_t> nodes, buffers;
  const Bytes body = body_of(thread, records, buffers);
  const std::size_t count = columns().size();
  for (std::size_t i = 0; i < count; ++i) nodes.insert(nodes.end(), {records.size(), 0});
  FlatWriter flat;
  const auto header = begin_message(flat, kBatchMessage, body.size());
  const FlatField fields[] = {{0, 8, records.size()}, flat_reference(1), flat_reference(2)};
  const auto batch = flat.table(header, fields);
  flat.numbers(batch[1], count, nodes);
  flat.numbers(batch[2], 2 * count, buffers);
  const std::uint64_t offset_bytes = written_bytes_;
  const std::uint64_t metadata_bytes = put_message(flat.finish());
  put(text(body));
  blocks_.push_back({offset_bytes, metadata_bytes, body.size()});
}

// Footer: version (0), schema (1), dictionaries (2), batches (3).
void ArrowFile::end() {
  Bytes mark;
  append(mark, 0xffffffff, 4);
  append(mark, 0, 4);
  put(text(mark));
  FlatWriter flat;
  const FlatField fields[] = {
      flat_reference(1), flat_reference(2), flat_reference(3), {0, 2, kVersion5}};
  const auto footer = flat.table(FlatWriter::kRoot, fields);
  put_schema(flat, footer[0]);
  flat.numbers(footer[1], 0, {});
  std::vector<std::uint64_t> blocks;
  for (const Block& block : blocks_)
    blocks.insert(blocks.end(), {block.offset_bytes, block.metadata_bytes, block.body_bytes});
  flat.numbers(footer[2], blocks_.size(), blocks);
  const Bytes bytes = flat.finish();
  put(text(bytes));
  Bytes size;
  append(size, bytes.size(), 4);
  put(text(size));
  put(kMagic);
}

}  // namespace tailtrace
