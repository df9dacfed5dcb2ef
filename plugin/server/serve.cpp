#include "plugin/server/serve.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "plugin/server/below.h"
#include "plugin/server/engine_of.h"
#include "plugin/server/gdbserver_link.h"
#include "plugin/server/listener.h"
#include "plugin/server/private_folder.h"
#include "plugin/server/proxy.h"
#include "plugin/server/qemu_link.h"
#include "plugin/server/recorder.h"

namespace tailtrace {
namespace {

// Signals that end the server, as something to poll for. What they were before comes back with
// the destructor.
class EndSignals {
 public:
  EndSignals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, &before_);
    fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    // A peer that is gone is seen when it is written to.
    pipe_before_ = ::signal(SIGPIPE, SIG_IGN);
  }
  ~EndSignals() {
    ::signal(SIGPIPE, pipe_before_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  int fd() const { return fd_.get(); }

 private:
  sigset_t before_;
  void (*pipe_before_)(int) = SIG_DFL;
  UniqueFd fd_;
};

// Serves whoever connects. Errors: as Proxy::run.
Result<int> serve_with(const ServeOptions& options, Listener& listener, Below& below,
                       Recorder& recorder, int signals) {
  if (options.say && !listener.is_stdio()) options.say(listener.announcement());
  if (options.on_listening)
    if (auto told = options.on_listening(listener.comm()); !told)
      return fail(std::move(told.error()));
  return Proxy(options, listener, below, recorder, signals).run();
}

Result<int> serve_by_gdbserver(const ServeOptions& options, Listener& listener, int signals) {
  auto folder = PrivateFolder::make();
  if (!folder) return fail(std::move(folder.error()));
  auto started = GdbserverLink::start(options, !listener.is_stdio());
  if (!started) return fail(std::move(started.error()));
  if (!started->link) return started->exit_status;
  Below below(std::move(started->link));
  ChosenEngine chosen = choose_engine(options, folder->path(), below);
  Recorder recorder(below, *chosen.engine, chosen.step);
  return serve_with(options, listener, below, recorder, signals);
}

Result<int> serve_by_qemu(const ServeOptions& options, Listener& listener, int signals) {
  if (options.attach_pid)
    return fail(ErrorCode::kUsage, "cannot attach with the qemu engine",
                "qemu records programs that it starts itself", "use --engine=step");
  QemuLiveEngine engine;
  auto link = QemuLink::start(options, !listener.is_stdio(), engine);
  if (!link) return fail(std::move(link.error()));
  Below below(std::move(*link));
  Recorder recorder(below, engine, nullptr);
  return serve_with(options, listener, below, recorder, signals);
}

}  // namespace

Result<int> serve(const ServeOptions& options) {
  if (auto works = check_engine(options); !works) return fail(std::move(works.error()));
  auto listener = Listener::open(options.comm, options.allow_remote_hosts);
  if (!listener) return fail(std::move(listener.error()));
  EndSignals signals;
  // Whoever asks for a gdbserver and nothing else gets all that gdbserver can do.
  return options.engine == EngineChoice::kQemu
             ? serve_by_qemu(options, *listener, signals.fd())
             : serve_by_gdbserver(options, *listener, signals.fd());
}

}  // namespace tailtrace
