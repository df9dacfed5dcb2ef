#include "plugin/engines/engine.h"
