#include "plugin/server/below/gdbserver_preload.h"

#include "plugin/engines/own_files.h"
#include "plugin/server/below/gdbserver_preload/xsave_layout.h"

namespace tailtrace {

Result<std::string> preload_of_gdbserver() {
  const XsaveLayout layout = XsaveLayout::of_processor();
  if (!layout.is_elsewhere && !layout.is_longer) return std::string();
  return find_own_file("libtailtrace_gdbserver.so");
}

}  // namespace tailtrace
