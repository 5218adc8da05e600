// Files in a cache of Hugging Face's hub, where a name is a link to a blob:
//
//   HUB/REPOSITORY/snapshots/REVISION/[...]/NAME -> ../../[../...]blobs/BLOB
//   HUB/REPOSITORY/blobs/BLOB                       a file, or -> ../../blobs/PREFIX/HASH
//   HUB/blobs/PREFIX/HASH                           a file that repositories share
//
// Only a link of exactly this form is followed, never by the system: each step is opened from the
// descriptor of a directory, without links.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/io/file_descriptor.h"

namespace triptych::onnx {

/// Opens the blob that the link `name` in `folder` leads to. Empty when that fails, with ELOOP in
/// errno when it is no link of a cache.
internal::FileDescriptor open_cached_blob(const internal::FileDescriptor& folder,
                                          const std::string& name);

}  // namespace triptych::onnx
