// `triptych page gpu` and `collectives`: pages with data that is recorded during the command.
// SPDX-License-Identifier: Apache-2.0
#include "experiments/app/own_kernels.h"
#include "experiments/app/parts.h"
#include "experiments/studies/collectives_report.h"
#include "experiments/web/gpu_record.h"
#include "experiments/web/pages.h"

namespace triptych::app {

std::vector<Command> add_web_pages(Command& page, Context& context) {
  auto own = make_own_kernels();
  auto gpu = add_web_page(page, context, kGpuPage, [own] {
    return has_file(*own) ? own_kernel_page(*own) : web::gpu_page(web::record_gpu());
  });
  add_own_kernels(gpu, *own);
  return {
      gpu,
      add_web_page(page, context, kCollectivesPage,
                   [] { return web::collectives_page(studies::collectives_report()); }),
  };
}

}  // namespace triptych::app
