//! The operands of a matrix product: each a fused body of its own.

use super::build::{Builder, Cuts, Obstacle, Product, Stop};
use super::coords;
use crate::graph::{GraphOp, NodeId};
use crate::index::Index;
use crate::plan::Factor;

impl Builder<'_> {
    /// The operands of the product, each in a body of its own over (batch.., m, n, k).
    pub(super) fn contract(&mut self, node: NodeId, product: u32) -> Result<Product, Stop> {
        let GraphOp::Matmul = self.graph.nodes[node].op else { unreachable!("a product is of a matmul") };
        let (a, b) = (self.graph.nodes[node].args[0], self.graph.nodes[node].args[1]);
        let shape = self.graph.nodes[node].shape;
        let rank = shape.rank();
        let batch = shape[..rank - 2].to_vec();
        let from = self.graph.nodes[a].shape;
        let (m, n, k) = (shape[rank - 2], shape[rank - 1], from[from.rank() - 1]);
        let left = self.factor(a, &[&batch[..], &[m, k]].concat())?;
        let right = self.factor(b, &[&batch[..], &[k, n]].concat())?;
        Ok(Product { batch, m, n, k, left, right, product })
    }

    /// An operand in a body of its own over `extents`: batch axes, rows and columns.
    fn factor(&mut self, id: NodeId, extents: &[usize]) -> Result<Factor, Stop> {
        let axes = extents.iter().map(|&d| if d == 1 { vec![] } else { vec![d] }).collect();
        let mut cuts = Cuts { axes, inner: vec![] };
        loop {
            let mut builder = Builder::new(self.graph, self.decisions, self.costs, self.done, None);
            let coords: Vec<Index> = cuts.axes.iter().map(|factors| builder.add_vars(factors, false)).collect();
            let place = builder.place(coords::broadcast(&coords, &self.graph.nodes[id].shape));
            match builder.emit((id, place, 0), &mut Cuts::default()) {
                Ok(value) => {
                    // The operand is the last value; what was emitted after it belongs to nothing.
                    builder.body.insts.truncate(value as usize + 1);
                    builder.body.dtypes.truncate(value as usize + 1);
                    self.loads.append(&mut builder.loads);
                    self.memo.extend(builder.memo.into_iter().map(|((node, ..), _)| ((node, u32::MAX, 0), 0)));
                    return Ok(Factor { axes: cuts.axes, body: builder.body });
                }
                Err(Stop::Split(split)) => cuts.cut(split),
                // Whatever does not fit an operand is stored, together with what surrounds it.
                Err(Stop::Obstacle(obstacle)) => {
                    let target = self.below_views(id);
                    let stored =
                        self.decisions.stored[target] || matches!(self.graph.nodes[target].op, GraphOp::Leaf(_));
                    return Err(Stop::Obstacle(if stored { obstacle } else { Obstacle::Store(target) }));
                }
            }
        }
    }
}
