//! Plans as text: a [`Plan`] enters; its buffers, kernels, loops and stores leave, a line each.

use super::{BufferId, Class, Kernel, Place, Plan, Var};
use crate::expr::{Body, Inst, PrintInst};
use std::fmt;

impl fmt::Display for BufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Class::Map => "map",
            Class::Reduce => "reduce",
            Class::Scan => "scan",
            Class::Contract => "contract",
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        writeln!(
            f,
            "plan: {} kernel{}, {} flops, {} bytes read, {} written, {} scratch",
            stats.kernels,
            if stats.kernels == 1 { "" } else { "s" },
            stats.flops,
            stats.bytes_read,
            stats.bytes_written,
            stats.peak_scratch_bytes
        )?;
        for (id, buffer) in self.buffers.iter().enumerate() {
            let place = match buffer.place {
                Place::Input(i) => format!("input {i}"),
                Place::Output(i) => format!("output {i}"),
                Place::Scratch(at) => format!("scratch at {at}"),
            };
            writeln!(f, "  b{id}: {}{} {place}", buffer.dtype, buffer.shape)?;
        }
        for (number, kernel) in self.kernels.iter().enumerate() {
            if let Kernel::Contract(c) = kernel {
                writeln!(f, "kernel {number}: contract batch {:?} m {} n {} k {}", c.batch, c.m, c.n, c.k)?;
                for (name, factor) in [("left", &c.left), ("right", &c.right)] {
                    writeln!(f, "  {name} over {:?}:", factor.axes)?;
                    print_body(f, &factor.body)?;
                }
                writeln!(f, "  end over {}, the product in access {}:", vars(&c.end.vars), c.product)?;
            } else {
                writeln!(f, "kernel {number}: {} over {}", kernel.class(), vars(&kernel.end().vars))?;
            }
            print_body(f, &kernel.end().body)?;
            for store in &kernel.end().stores {
                writeln!(f, "    {}[{}] = %{}", store.buffer, store.index, store.value)?;
            }
        }
        Ok(())
    }
}

fn vars(vars: &[Var]) -> String {
    let list: Vec<String> = vars
        .iter()
        .enumerate()
        .map(|(i, v)| format!("i{i} < {}{}", v.extent, if v.inner { " (inner)" } else { "" }))
        .collect();
    if list.is_empty() { "one point".into() } else { list.join(", ") }
}

fn print_body(f: &mut fmt::Formatter<'_>, body: &Body) -> fmt::Result {
    for at in 0..body.insts.len() {
        if !matches!(body.insts[at], Inst::Const(_)) || body.insts.len() == 1 {
            writeln!(f, "    {}", PrintInst(body, at))?;
        }
    }
    Ok(())
}
