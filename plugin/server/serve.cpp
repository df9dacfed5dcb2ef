#include "plugin/server/serve.h"

#include "plugin/provider/kept_recording.h"
#include "plugin/server/below/below.h"
#include "plugin/server/below/end_signals.h"
#include "plugin/server/below/gdbserver_link.h"
#include "plugin/server/below/listener.h"
#include "plugin/server/below/lldb_server_link.h"
#include "plugin/server/below/private_folder.h"
#include "plugin/server/engine_of.h"
#include "plugin/server/proxy.h"
#include "plugin/server/qemu/qemu_link.h"
#include "plugin/server/recording/recorder.h"

namespace tailtrace {
namespace {

// Serves whoever connects. Errors: as Proxy::run.
Result<int> serve_with(const ServeOptions& options, Listener& listener, Below& below,
                       Recorder& recorder, EndSignals& signals) {
  if (options.say && !listener.is_stdio()) options.say(listener.announcement());
  if (options.on_listening)
    if (auto told = options.on_listening(listener.comm()); !told)
      return fail(std::move(told.error()));
  return Proxy(options, listener, below, recorder, signals).run();
}

// With steps the Stepper meets them, and knows where they stand.
void meet_new_threads(NewThreads& threads, Recorder& recorder) {
  if (recorder.needs_steps()) return;
  threads.set_on_new_thread([&recorder](std::int32_t tid) { recorder.thread_made(tid); });
}

Result<int> serve_by_gdbserver(const ServeOptions& options, Listener& listener,
                               EndSignals& signals) {
  std::optional<KeptRecording> kept;
  if (!options.keep_folder.empty()) {
    auto created = KeptRecording::create(options.keep_folder);
    if (!created) return fail(std::move(created.error()));
    kept.emplace(std::move(*created));
  }
  auto folder = make_private_folder();
  if (!folder) return fail(std::move(folder.error()));
  auto started = GdbserverLink::start(options, !listener.is_stdio(), signals);
  if (!started) return fail(std::move(started.error()));
  if (!started->link) return started->exit_status;
  GdbserverLink& link = *started->link;
  Below below(std::move(started->link), signals);
  ChosenEngine chosen = choose_engine(options, folder->path(), below);
  Recorder recorder(below, *chosen.engine, chosen.step);
  meet_new_threads(link.new_threads(), recorder);
  if (!kept) return serve_with(options, listener, below, recorder, signals);
  recorder.keep_in(*kept);
  auto served = serve_with(options, listener, below, recorder, signals);
  recorder.keep_all();
  if (auto finished = kept->finish(); !finished) return fail(std::move(finished.error()));
  for (const Error& remark : kept->remarks())
    if (options.say) options.say(remark.to_string());
  return served;
}

Result<int> serve_by_lldb_server(const ServeOptions& options, Listener& listener,
                                 EndSignals& signals) {
  auto folder = make_private_folder();
  if (!folder) return fail(std::move(folder.error()));
  auto started = LldbServerLink::start(options.lldb_server, options.lldb_server_words, signals);
  if (!started) return fail(std::move(started.error()));
  // What it says reaches nobody when it is LLDB that waits.
  if (!started->link && options.connected >= 0)
    return not_lldb_server(
        options.lldb_server,
        "it has exited with status " + std::to_string(started->exit_status) + " at once");
  if (!started->link) return started->exit_status;
  LldbServerLink& link = *started->link;
  Below below(std::move(started->link), signals);
  below.set_lldb_server();
  ChosenEngine chosen = choose_engine(options, folder->path(), below);
  Recorder recorder(below, *chosen.engine, chosen.step);
  meet_new_threads(link.new_threads(), recorder);
  return serve_with(options, listener, below, recorder, signals);
}

Result<int> serve_by_qemu(const ServeOptions& options, Listener& listener, EndSignals& signals) {
  if (options.attach_pid)
    return fail(ErrorCode::kUsage, "cannot attach with the qemu engine",
                "qemu records programs that it starts itself", "use --engine=step");
  QemuPrograms programs(options, !listener.is_stdio(), signals);
  auto link = std::make_unique<QemuLink>(options, programs);
  if (!options.program.empty())
    if (auto started = link->start(options.program); !started)
      return fail(std::move(started.error()));
  Below below(std::move(link), signals);
  Recorder recorder(below, programs, nullptr);
  return serve_with(options, listener, below, recorder, signals);
}

// Whoever asks for a gdbserver and nothing else gets all that gdbserver can do.
Result<int> serve_by_server_below(const ServeOptions& options, Listener& listener,
                                  EndSignals& signals) {
  if (options.engine == EngineChoice::kQemu) return serve_by_qemu(options, listener, signals);
  if (!options.lldb_server.empty()) return serve_by_lldb_server(options, listener, signals);
  return serve_by_gdbserver(options, listener, signals);
}

}  // namespace

Result<int> serve(const ServeOptions& options) {
  if (auto works = check_engine(options); !works) return fail(std::move(works.error()));
  auto listener = options.connected >= 0 ? Listener::of_stream(UniqueFd(options.connected))
                                         : Listener::open(options.comm, options.allow_remote_hosts);
  if (!listener) return fail(std::move(listener.error()));
  EndSignals signals;
  auto served = serve_by_server_below(options, *listener, signals);
  if (int signal = signals.take(); signal != 0) return 128 + signal;
  return served;
}

}  // namespace tailtrace
