#include "plugin/cli/commands/packets_command.h"

#include <fmt/format.h>

#include <optional>

#include "decoder/base/json_text.h"
#include "decoder/bundle/trace_file.h"
#include "decoder/pt/packets/packet_reader.h"
#include "plugin/cli/commands.h"
#include "plugin/cli/count_option.h"
#include "plugin/cli/decode_input.h"
#include "plugin/cli/json_list.h"
#include "plugin/cli/long_work.h"
#include "plugin/cli/output_options.h"

namespace tailtrace {
namespace {

using pt::Packet;
using pt::PacketKind;
using pt::ReadStatus;
using OrderedJson = nlohmann::ordered_json;

bool has_address(PacketKind kind) {
  return kind == PacketKind::kTip || kind == PacketKind::kTipPge || kind == PacketKind::kTipPgd ||
         kind == PacketKind::kFup;
}

std::string_view status_text(ReadStatus status) {
  switch (status) {
    case ReadStatus::kCut:
      return "the trace ends inside a packet";
    case ReadStatus::kBadPacket:
      return "a packet with an impossible payload";
    default:
      return "bytes that are no packet";
  }
}

// The outcomes of a TNT, the oldest first, as the SDM draws them: T and N.
std::string outcomes(const Packet& packet) {
  std::string text;
  for (unsigned i = packet.bits; i-- != 0;) text += (packet.payload >> i & 1) != 0 ? 'T' : 'N';
  return text;
}

std::string mode_text(std::uint64_t bits) {
  static constexpr const char* kWidths[] = {"16-bit", "64-bit", "32-bit", "reserved"};
  return std::string(kWidths[bits & 3]) + ((bits & 4) != 0 ? ", IF" : "");
}

std::string payload_text(const ListedPacket& listed) {
  const Packet& p = listed.packet;
  if (has_address(p.kind))
    return p.bits == pt::kIpSuppressed ? "no address"
                                       : fmt::format("{:#x} (IPBytes {})", listed.ip, p.bits);
  switch (p.kind) {
    case PacketKind::kTnt:
      return outcomes(p);
    case PacketKind::kModeExec:
      return mode_text(p.payload);
    case PacketKind::kModeTsx:
      return fmt::format("InTX {}, TXAbort {}", p.payload & 1, p.payload >> 1 & 1);
    case PacketKind::kPip:
      return fmt::format("CR3 {:#x}, NR {}", p.payload, p.bits);
    case PacketKind::kTma:
      return fmt::format("CTC {:#x}, FC {:#x}", p.payload & 0xffff, p.payload >> 16);
    case PacketKind::kVmcs:
    case PacketKind::kTsc:
    case PacketKind::kMtc:
    case PacketKind::kMnt:
      return fmt::format("{:#x}", p.payload);
    case PacketKind::kCyc:
    case PacketKind::kCbr:
      return fmt::format("{}", p.payload);
    case PacketKind::kPtw:
      return fmt::format("{:#x} ({} bytes)", p.payload, p.bits);
    case PacketKind::kMwait:
      return fmt::format("hints {:#x}, extensions {:#x}", p.payload & 0xffffffff, p.payload >> 32);
    case PacketKind::kPwre:
      return fmt::format("C{}.{}, HW {}", pt::c_state(p.payload & 0xff),
                         pt::c_state(p.payload >> 8), p.bits);
    case PacketKind::kPwrx:
      return fmt::format("last C{}, deepest C{}, reason {:#x}", pt::c_state(p.payload & 0xff),
                         pt::c_state(p.payload >> 8), p.bits);
    case PacketKind::kBbp:
      return fmt::format("type {}, items of {} bytes", p.bits, p.payload);
    case PacketKind::kBip:
    case PacketKind::kEvd:
      return fmt::format("{}: {:#x}", p.bits, p.payload);
    case PacketKind::kCfe:
      return fmt::format("type {}, vector {}", p.bits, p.payload);
    case PacketKind::kTrig:
      return fmt::format("{:#x}{}{}", p.payload & 0xff, (p.bits & 2) != 0 ? ", MULT" : "",
                         (p.bits & 1) != 0 ? fmt::format(", ICNT {}", p.payload >> 8) : "");
    default:
      return {};
  }
}

// What a packet has beside its payload; null: nothing.
const char* other_field(PacketKind kind) {
  switch (kind) {
    case PacketKind::kPip:
      return "nr";
    case PacketKind::kPtw:
      return "payload_bytes";
    case PacketKind::kPwre:
      return "hw";
    case PacketKind::kPwrx:
      return "wake_reason";
    case PacketKind::kBip:
      return "id";
    case PacketKind::kBbp:
    case PacketKind::kCfe:
    case PacketKind::kEvd:
      return "type";
    case PacketKind::kTrig:
      return "flags";
    default:
      return nullptr;
  }
}

const char* schema_of(JsonForm form) {
  return form == JsonForm::kLines ? "tailtrace.packet/1" : "tailtrace.packets/1";
}

struct PacketsCommandOptions {
  std::string file;
  std::string cpu;
  std::uint64_t limit = 0;  // packets; 0 is all
};

Result<int> run(const PacketsCommandOptions& options, const OutputOptions& output,
                const Invocation& invocation) {
  Result<MappedFile> trace = open_named_file(options.file);
  if (!trace) return fail(std::move(trace.error()));
  if (auto other = refuse_perf_data(options.file, trace->bytes()); !other)
    return fail(other.error());
  pt::Cpu cpu;
  if (!options.cpu.empty()) {
    auto parsed = parse_cpu(options.cpu);
    if (!parsed) return fail(parsed.error());
    cpu = *parsed;
    if (auto unknown = note_of_cpu(cpu)) fmt::print(invocation.err, "note: {}\n", *unknown);
  }
  LineOutput out(invocation.out);
  std::optional<JsonList> list;
  if (output.json != JsonForm::kNone)
    list.emplace(out, output.json, OrderedJson{{"schema", schema_of(output.json)}}, "packets");
  std::uint64_t count = 0;
  Printing printing(invocation.out);
  list_packets(trace->bytes(), pt::errata_of(cpu), [&](const ListedPacket& listed) {
    if (!printing.goes_on()) return false;
    if (list)
      list->put(json_text(packet_json(listed)));
    else
      out.print(FMT_COMPILE("{}\n"), packet_text(listed));
    return ++count != options.limit;
  });
  if (list) list->finish();
  out.flush();
  return kExitDone;
}

}  // namespace

void list_packets(ByteSpan trace, const pt::Errata& errata,
                  const std::function<bool(const ListedPacket&)>& take) {
  pt::PacketReader packets(trace, errata.skz84);
  const std::optional<std::size_t> psb = pt::find_psb(trace, 0);
  packets.seek(psb.value_or(trace.size()));
  if (packets.offset() != 0) {
    ListedPacket before;
    before.size_bytes = packets.offset();
    before.error = psb ? "bytes before the first PSB" : "there is no PSB";
    if (!take(before)) return;
  }
  std::uint64_t last_ip = 0;
  for (;;) {
    ListedPacket listed;
    listed.offset_bytes = packets.offset();
    ReadStatus status = packets.next(listed.packet);
    if (errata.skd007 && status == ReadStatus::kOk &&
        pt::is_cut_by_ovf(listed.packet, trace, packets.offset())) {
      packets.seek(listed.offset_bytes + 1);
      status = packets.next(listed.packet);
    }
    if (status == ReadStatus::kEnd) return;
    if (status == ReadStatus::kOk) {
      listed.size_bytes = packets.offset() - listed.offset_bytes;
      // As such the reader skips it.
      if (listed.packet.kind == PacketKind::kPad && listed.size_bytes > 1)
        listed.error = "a TMA that erratum SKZ84 corrupted";
      if (listed.packet.kind == PacketKind::kPsb) last_ip = 0;
      if (has_address(listed.packet.kind) && listed.packet.bits != pt::kIpSuppressed)
        listed.ip = last_ip = pt::apply_ip(last_ip, listed.packet);
    } else {
      listed.error = status_text(status);
      std::size_t next = pt::find_psb(trace, listed.offset_bytes + 1).value_or(trace.size());
      listed.size_bytes = next - listed.offset_bytes;
      packets.seek(next);
      last_ip = 0;
    }
    if (!take(listed)) return;
  }
}

std::string packet_text(const ListedPacket& listed) {
  if (!listed.error.empty())
    return fmt::format("{:016x}  -- {}: {} bytes left out --", listed.offset_bytes, listed.error,
                       listed.size_bytes);
  std::string payload = payload_text(listed);
  if (listed.packet.has_ip) payload += payload.empty() ? "IP" : ", IP";
  std::string line = fmt::format("{:016x}  {:<10} {}", listed.offset_bytes,
                                 pt::packet_name(listed.packet.kind), payload);
  while (line.back() == ' ') line.pop_back();
  return line;
}

nlohmann::ordered_json packet_json(const ListedPacket& listed) {
  nlohmann::ordered_json json;
  json["offset"] = listed.offset_bytes;
  json["size"] = listed.size_bytes;
  if (!listed.error.empty()) {
    json["error"] = listed.error;
    return json;
  }
  json["packet"] = pt::packet_name(listed.packet.kind);
  if (has_address(listed.packet.kind)) {
    json["ip_bytes"] = listed.packet.bits;
    if (listed.packet.bits != pt::kIpSuppressed) json["address"] = json_address({listed.ip});
    return json;
  }
  if (listed.packet.kind == PacketKind::kTnt) json["outcomes"] = outcomes(listed.packet);
  if (std::string text = payload_text(listed); !text.empty()) json["text"] = text;
  json["payload"] = fmt::format("{:#x}", listed.packet.payload);
  if (const char* name = other_field(listed.packet.kind)) json[name] = listed.packet.bits;
  if (listed.packet.has_ip) json["has_ip"] = true;
  return json;
}

Command packets_command() {
  return {
      .name = "packets",
      .summary = "List the packets of an Intel PT trace",
      .usage = "[OPTIONS] FILE",
      .examples =
          {
              {"tailtrace packets trace.pt", "one line a packet"},
              {"tailtrace packets --limit=100 trace.pt", "the first hundred"},
              {"tailtrace packets --json=lines trace.pt | jq .packet", "one JSON object a packet"},
          },
      .define = [](CLI::App& app) -> RunCommand {
        auto options = std::make_shared<PacketsCommandOptions>();
        app.add_option("FILE", options->file, "the raw bytes of a trace; a pipe is read to its end")
            ->required();
        app.add_option("--cpu", options->cpu, "the processor that wrote the trace, for its errata")
            ->type_name("FAMILY/MODEL/STEPPING");
        add_count(app, "--limit", options->limit, "stop after N packets");
        auto output = add_output_options(app);
        return [options, output](const Invocation& invocation) {
          return run(*options, *output, invocation);
        };
      },
      .take_program = {},
      .details =
          "The list begins at the first PSB, and says how much lies before it. Where bytes are no "
          "packet it says so and goes on at the next PSB.",
  };
}

}  // namespace tailtrace
