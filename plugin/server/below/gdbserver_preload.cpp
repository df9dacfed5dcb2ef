#include "plugin/server/below/gdbserver_preload.h"

#include "plugin/engines/own_files.h"
#include "plugin/server/below/gdbserver_preload/xsave_layout.h"

namespace tailtrace {

Result<std::string> preload_of_gdbserver(bool may_attach) {
  if (!may_attach && !XsaveLayout::of_processor().is_other()) return std::string();
  return find_own_file("libtailtrace_gdbserver.so");
}

}  // namespace tailtrace
